// SPDX-License-Identifier: Apache-2.0
// Any text is either a system that can be simulated, or refused with one sentence; so is any text a fault or none.
#include "model/fault.hpp"
#include "system/system_model_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void check(const std::exception& error) {
    const std::string_view sentence = error.what();
    if (sentence.empty()) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const sonde::simulate::SystemModel site = sonde::simulate::read_system_model(text, "");
        // Conditions that the model does not check again.
        if (site.clients.empty() || site.targets.empty() || site.metadata_servers.empty()) {
            std::abort();
        }
    } catch (const sonde::simulate::SystemModelError& error) {
        check(error);
    }
    try {
        const sonde::simulate::Fault fault = sonde::simulate::parse_fault(text.substr(0, 64));
        if (sonde::simulate::parse_fault(fault.to_text()).to_text() != fault.to_text()) {
            std::abort();
        }
    } catch (const sonde::simulate::SystemModelError& error) {
        check(error);
    }
    return 0;
}
