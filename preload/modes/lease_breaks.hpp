// SPDX-License-Identifier: Apache-2.0
// Releases a file when another process opens it and breaks the lease.
#pragma once

namespace sonde::buffer {

/// Before the first lease.
void install_lease_break_handler() noexcept;

inline constexpr const char* why_opened_elsewhere = "another process opened it";

}  // namespace sonde::buffer
