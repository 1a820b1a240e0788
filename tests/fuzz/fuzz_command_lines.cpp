// SPDX-License-Identifier: Apache-2.0
// Any command line of ior, mdtest or md-workbench becomes plans or is refused with one sentence. The first byte selects
// the tool, NUL bytes separate the arguments.
#include "dialects/dialect.hpp"
#include "plan/parse.hpp"
#include "records/text.hpp"
#include "runs/capabilities.hpp"

#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using sonde::dialects::Session;

std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> arguments;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\0'), text.size());
        arguments.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return arguments;
}

/// Whether these arguments may name a file: ior and md-workbench read and write such files before the first plan. A
/// name that the fuzzer invents must lead to no device.
bool names_file(const std::vector<std::string>& arguments) {
    return std::any_of(arguments.begin(), arguments.end(), [](std::string argument) {
        std::transform(argument.begin(), argument.end(), argument.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        return argument.find("file") != std::string::npos || argument.find("/dev") != std::string::npos ||
               argument.find("/proc") != std::string::npos || argument.find("/sys") != std::string::npos;
    });
}

/// The program prints every error by this function: arguments in it may hold any byte.
void check_sentence(const std::string& error) {
    const std::string sentence = sonde::records::to_single_line(error);
    if (sentence.empty() || sentence.find('\n') != std::string::npos) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
    std::cout.setstate(std::ios::failbit);  // dialects print headings
    std::cerr.setstate(std::ios::failbit);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto dialects = sonde::dialects::list_dialects();
    if (size == 0 || data[0] >= dialects.size()) {
        return -1;
    }
    const std::vector<std::string> arguments = split({reinterpret_cast<const char*>(data) + 1, size - 1});
    if (names_file(arguments)) {
        return -1;
    }
    try {
        const auto session = dialects[data[0]]->make_session(arguments);
        session->needs_mpi();
        session->begin({});
        for (int plans = 0; plans < 4; ++plans) {
            const auto plan = session->next_plan();
            if (!plan) {
                break;
            }
            sonde::plan::parse_plan(*plan, sonde::runs::list_capabilities());
            session->end_plan(0);
        }
    } catch (const sonde::plan::PlanError& error) {
        check_sentence(error.what());
    } catch (const sonde::dialects::HelpRequested&) {
    }
    return 0;
}
