// SPDX-License-Identifier: Apache-2.0
// Time of the model: whole nanoseconds since the machine was built, so that no result depends on rounding of sums.
#pragma once

#include <cstdint>
#include <limits>

namespace sonde::simulate {

using Time = std::int64_t;
constexpr Time no_time = std::numeric_limits<Time>::max();

/// Longest time in seconds of one step of a machine, about thirty years: several can be added without overflow.
/// Readers of system files reject longer times (system/system_parts.hpp); times computed from rates are clamped here.
constexpr double longest_s = 1e9;

/// Rounds nanoseconds to a time. Larger values and NaN become `longest_s`.
constexpr Time round_to_ns(double ns) noexcept {
    return static_cast<Time>(ns < longest_s * 1e9 ? ns + 0.5 : longest_s * 1e9);
}
/// Rounds seconds to the nearest nanosecond, at most `longest_s`.
constexpr Time seconds_to_time(double seconds) noexcept {
    return round_to_ns(seconds * 1e9);
}
/// `length` times a factor of at least 0, at most `longest_s`.
constexpr Time multiply_time(Time length, double factor) noexcept {
    return round_to_ns(static_cast<double>(length) * factor);
}
/// Time to transfer `bytes` at `bytes_per_s`. A rate of 0 means no limit and takes no time.
constexpr Time transfer_time(double bytes, double bytes_per_s) noexcept {
    return bytes_per_s > 0 ? seconds_to_time(bytes / bytes_per_s) : 0;
}
/// `start + length`, or `never` when the sum overflows.
constexpr Time add_time(Time start, Time length) noexcept {
    return start > no_time - length ? no_time : start + length;
}
constexpr double to_seconds(Time time) noexcept {
    return static_cast<double>(time) / 1e9;
}

}  // namespace sonde::simulate
