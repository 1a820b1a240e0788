// SPDX-License-Identifier: Apache-2.0
// Time of the model: whole nanoseconds since the machine was built, so that no result hangs on rounding of sums.
#pragma once

#include <cstdint>
#include <limits>

namespace sonde::simulate {

using Time = std::int64_t;
constexpr Time never = std::numeric_limits<Time>::max();

/// Seconds as time, rounded to the nearest nanosecond.
constexpr Time time_of(double seconds) noexcept {
    return static_cast<Time>(seconds * 1e9 + 0.5);
}
/// How long `bytes` take at `bytes_per_s`; a rate of 0 is no limit.
constexpr Time time_for(double bytes, double bytes_per_s) noexcept {
    return bytes_per_s > 0 ? time_of(bytes / bytes_per_s) : 0;
}
constexpr double seconds(Time time) noexcept {
    return static_cast<double>(time) / 1e9;
}

}  // namespace sonde::simulate
