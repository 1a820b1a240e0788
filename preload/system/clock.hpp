// SPDX-License-Identifier: Apache-2.0
// Reads the time-stamp counter, the cheapest clock. The length of a tick is measured over the whole run.
#pragma once

#include <time.h>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace sonde::system {

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    return __rdtsc();
#else
    std::uint64_t value = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
}

inline std::uint64_t clock_ns(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t now_ns() noexcept {
    return clock_ns(CLOCK_MONOTONIC);
}

}  // namespace sonde::system
