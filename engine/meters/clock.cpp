// SPDX-License-Identifier: Apache-2.0
#include "meters/clock.hpp"

#include "plan/uint128.hpp"

#include <sys/resource.h>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

namespace sonde::meters {
namespace {

std::uint64_t read_counter() {
    Clock probe;
    probe.uses_counter = true;
    return probe.ticks();
}

/// One pair of readings taken as close together as possible: of several tries the one whose two counter readings
/// enclose the clock reading most tightly.
struct ClockPair {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
};

ClockPair read_pair() {
    ClockPair best;
    std::uint64_t tightest = std::numeric_limits<std::uint64_t>::max();
    for (int i = 0; i < 16; ++i) {
        const std::uint64_t before = read_counter();
        const std::int64_t ns = Clock::monotonic_ns();
        const std::uint64_t after = read_counter();
        if (after - before < tightest) {
            tightest = after - before;
            best = {before + (after - before) / 2, ns};
        }
    }
    return best;
}

/// The kernel trusts the counter only when it is invariant and synchronous over all cores: so do we.
bool counter_is_trusted() {
    const char* wish = std::getenv("SONDE_CLOCK");
    if (wish != nullptr && std::strcmp(wish, "monotonic") == 0) {
        return false;
    }
#if defined(__x86_64__)
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string source;
    return (file >> source) && source == "tsc";
#elif defined(__aarch64__)
    return true;  // the generic timer is architecturally invariant and readable from user space
#else
    return false;
#endif
}

std::uint64_t to_fixed_point(std::int64_t ns, std::uint64_t ticks) {
    return static_cast<std::uint64_t>((static_cast<uint128>(ns) << 32U) / ticks);
}

}  // namespace

Clock Clock::calibrate() {
    Clock clock;
    if (!counter_is_trusted()) {
        return clock;
    }
    const ClockPair first = read_pair();
    timespec pause{0, 2'000'000};
    nanosleep(&pause, nullptr);
    const ClockPair second = read_pair();
    if (second.ticks <= first.ticks || second.ns <= first.ns) {
        return clock;
    }
    clock.uses_counter = true;
    clock.multiplier = to_fixed_point(second.ns - first.ns, second.ticks - first.ticks);
    clock.base_ticks = first.ticks;
    clock.base_ns = first.ns;
    return clock;
}

std::int64_t Clock::recalibrate() {
    if (!uses_counter) {
        return 0;
    }
    const ClockPair now = read_pair();
    const std::int64_t drift = to_ns(now.ticks) - now.ns;
    if (now.ticks > base_ticks && now.ns - base_ns > 1'000'000) {
        multiplier = to_fixed_point(now.ns - base_ns, now.ticks - base_ticks);
    }
    return drift;
}

std::string Clock::source() const {
    return uses_counter ? "tsc" : "clock_gettime(CLOCK_MONOTONIC)";
}

CpuTime read_thread_cpu_time() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto ns = [](const timeval& t) {
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_usec) * 1000U;
    };
    return {ns(usage.ru_utime), ns(usage.ru_stime)};
}

}  // namespace sonde::meters
