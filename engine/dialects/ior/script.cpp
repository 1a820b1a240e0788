// SPDX-License-Identifier: Apache-2.0
// IOR's script files: what stands before `IOR START` is ignored, `RUN` ends a test, `IOR STOP` ends the script.
#include "dialects/ior/arguments.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace sonde::dialects::ior {
namespace {

/// Lower case, blanks in a row as one, none at the ends.
std::string normalize_line(const std::string& line) {
    std::string text;
    for (const char c : line) {
        const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (!blank) {
            text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        } else if (!text.empty() && text.back() != ' ') {
            text += ' ';
        }
    }
    if (!text.empty() && text.back() == ' ') {
        text.pop_back();
    }
    return text;
}

}  // namespace

std::vector<IorSettings> read_script(const std::string& path, const IorSettings& defaults) {
    std::ifstream file(path);
    if (!file) {
        throw plan::PlanError("the script " + path + " cannot be read (" + std::strerror(errno) +
                              "): name an existing file after -f");
    }
    std::vector<IorSettings> tests;
    IorSettings current = defaults;
    bool begun = false;
    bool pending = true;  // settings that no RUN has used yet
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        const std::string text = normalize_line(line);
        if (!begun) {
            begun = text == "ior start";
            continue;
        }
        if (text.empty() || text[0] == '#') {
            continue;
        }
        if (text == "ior stop") {
            break;
        }
        if (text == "run") {
            tests.push_back(current);
            pending = false;
            continue;
        }
        apply_directives(current, line, path + " line " + std::to_string(number));
        pending = true;
    }
    if (!begun) {
        throw plan::PlanError("the script " + path + " has no line IOR START: what stands before it is not read");
    }
    if (pending) {
        tests.push_back(current);  // as IOR does: settings behind the last RUN are a test too
    }
    return tests;
}

}  // namespace sonde::dialects::ior
