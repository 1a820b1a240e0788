// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/hints.hpp"

#include "plan/plan_error.hpp"

#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace sonde::dialects::ior {

void add_hint(Hints& hints, const std::string& line) {
    constexpr std::string_view prefix = "IOR_HINT__MPI__";
    const std::size_t equal = line.find('=');
    if (!line.starts_with(prefix) || equal == std::string::npos) {
        return;
    }
    const auto trimmed = [](const std::string& text) {
        const std::size_t first = text.find_first_not_of(" \t");
        const std::size_t last = text.find_last_not_of(" \t\r");
        return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
    };
    const std::string name = trimmed(line.substr(prefix.size(), equal - prefix.size()));
    if (!name.empty()) {
        hints[name] = trimmed(line.substr(equal + 1));
    }
}

Hints read_hints_of_file(const std::string& path, Hints hints) {
    std::ifstream file(path);
    if (!file) {
        throw plan::PlanError("the file of hints " + path + " cannot be read (" + std::strerror(errno) +
                              "): name an existing one after --mpiio.hintsFileName");
    }
    for (std::string line; std::getline(file, line);) {
        add_hint(hints, line);
    }
    return hints;
}

Hints read_hints_of_environment() {
    Hints hints;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        add_hint(hints, *variable);
    }
    return hints;
}

}  // namespace sonde::dialects::ior
