// SPDX-License-Identifier: Apache-2.0
// Time of the model: whole nanoseconds since the machine was built, so that no result hangs on rounding of sums.
#pragma once

#include <cstdint>
#include <limits>

namespace sonde::simulate {

using Time = std::int64_t;
constexpr Time never = std::numeric_limits<Time>::max();

/// Longest time that one step of a machine takes, thirty years: several can be added. Who reads a time from outside
/// refuses what is longer (system/parts.hpp); what follows from rates and factors ends here.
constexpr double longest_s = 1e9;

/// Nanoseconds as time, rounded; `longest_s` for more, and for what is no number.
constexpr Time whole_ns(double ns) noexcept {
    return static_cast<Time>(ns < longest_s * 1e9 ? ns + 0.5 : longest_s * 1e9);
}
/// Seconds as time, rounded to the nearest nanosecond; not more than `longest_s`.
constexpr Time time_of(double seconds) noexcept {
    return whole_ns(seconds * 1e9);
}
/// `length` times a factor of at least 0; not more than `longest_s`.
constexpr Time scaled(Time length, double factor) noexcept {
    return whole_ns(static_cast<double>(length) * factor);
}
/// How long `bytes` take at `bytes_per_s`; a rate of 0 is no limit.
constexpr Time time_for(double bytes, double bytes_per_s) noexcept {
    return bytes_per_s > 0 ? time_of(bytes / bytes_per_s) : 0;
}
/// `by` later than `at`, and never where no number is left: a line of steps of `longest_s` gets there soon.
constexpr Time later(Time at, Time by) noexcept {
    return at > never - by ? never : at + by;
}
constexpr double seconds(Time time) noexcept {
    return static_cast<double>(time) / 1e9;
}

}  // namespace sonde::simulate
