// SPDX-License-Identifier: Apache-2.0
// Time for the hot loop: the invariant time-stamp counter where it can be trusted, CLOCK_MONOTONIC elsewhere.
#pragma once

#include "plan/uint128.hpp"

#include <time.h>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace sonde::meters {

/// Converts counter readings to CLOCK_MONOTONIC nanoseconds. A plain value: it can live in shared memory, so that all
/// processes of a node convert alike. Never steps back, is not touched by changes of the wall clock.
struct Clock {
    std::uint64_t base_ticks = 0;
    std::int64_t base_ns = 0;
    std::uint64_t multiplier = 1ULL << 32U;  ///< ns per tick, 32.32 fixed point
    bool uses_counter = false;  ///< true: ticks are the time-stamp counter; false: ticks are nanoseconds already

    /// Measures the counter against CLOCK_MONOTONIC for about two milliseconds. Falls back to clock_gettime when the
    /// kernel does not itself use the counter as its clock source (SONDE_CLOCK=monotonic forces that).
    static Clock calibrate();

    std::uint64_t ticks() const noexcept {
        return uses_counter ? counter_ticks() : static_cast<std::uint64_t>(monotonic_ns());
    }
    /// ticks() where `counter` is known to be true.
    static std::uint64_t counter_ticks() noexcept {
#if defined(__x86_64__)
        return __rdtsc();
#elif defined(__aarch64__)
        std::uint64_t value = 0;
        asm volatile("mrs %0, cntvct_el0" : "=r"(value));
        return value;
#else
        return static_cast<std::uint64_t>(monotonic_ns());
#endif
    }

    /// Length of an interval of `delta` ticks in nanoseconds.
    std::uint64_t duration_ns(std::uint64_t delta) const noexcept {
        return static_cast<std::uint64_t>((static_cast<uint128>(delta) * multiplier) >> 32U);
    }
    /// Time of a reading on CLOCK_MONOTONIC, ns.
    std::int64_t to_ns(std::uint64_t reading) const noexcept {
        const auto delta = static_cast<std::int64_t>(reading - base_ticks);
        return delta >= 0 ? base_ns + static_cast<std::int64_t>(duration_ns(static_cast<std::uint64_t>(delta)))
                          : base_ns - static_cast<std::int64_t>(duration_ns(static_cast<std::uint64_t>(-delta)));
    }
    std::int64_t now_ns() const noexcept {
        return to_ns(ticks());
    }
    /// Ticks of an interval in ns (inverse of duration_ns, rounded down).
    std::uint64_t ticks_of(std::uint64_t ns) const noexcept {
        return static_cast<std::uint64_t>((static_cast<uint128>(ns) << 32U) / multiplier);
    }
    /// Refines the multiplier over the whole time since calibrate(), between phases. Returns how far the old conversion
    /// had drifted from CLOCK_MONOTONIC, ns.
    std::int64_t recalibrate();
    std::string source() const;  ///< "tsc" or "clock_gettime(CLOCK_MONOTONIC)"

    static std::int64_t monotonic_ns() noexcept {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
    }
};

struct CpuTime {
    std::uint64_t user_ns = 0, system_ns = 0;
};

/// getrusage(RUSAGE_THREAD); the kernel's resolution is 1 us, on tick-based accounting 1–4 ms.
CpuTime read_thread_cpu_time();

}  // namespace sonde::meters
