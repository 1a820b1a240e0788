// SPDX-License-Identifier: Apache-2.0
#include "main/run_id.hpp"

#include <unistd.h>
#include <array>
#include <ctime>

namespace sonde {

std::string make_run_id(const std::string& name) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> stamp{};
    std::strftime(stamp.data(), stamp.size(), "%Y%m%dT%H%M%SZ", &parts);
    return std::string(stamp.data()) + "-" + name + "-" + std::to_string(getpid());
}

}  // namespace sonde
