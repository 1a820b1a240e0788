// SPDX-License-Identifier: Apache-2.0
// Writes to the system log without libc's syslog(), which allocates and locks.
#pragma once

#include <cstddef>

namespace sonde::system {

/// Sends a line that begins with its priority ("<11>") to /dev/log; without effect where no system log runs.
void send_to_system_log(const char* line, std::size_t length) noexcept;

}  // namespace sonde::system
