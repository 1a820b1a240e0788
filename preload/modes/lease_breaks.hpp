// SPDX-License-Identifier: Apache-2.0
// What happens when another process wants a file on which we hold a lease.
#pragma once

namespace sonde::buffer {

/// Before the first lease.
void install_lease_breaks() noexcept;

inline constexpr const char* why_opened_elsewhere = "another process opened it";

}  // namespace sonde::buffer
