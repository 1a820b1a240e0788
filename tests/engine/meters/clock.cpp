// SPDX-License-Identifier: Apache-2.0
// The clock: conversions that do not drift, and agreement with CLOCK_MONOTONIC.
#include "meters/clock.hpp"
#include "plan/uint128.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

using sonde::uint128;
using sonde::meters::Clock;

namespace {

/// A counter of `mhz` megahertz, as calibrate() would describe it.
Clock counter_of(double mhz) {
    Clock clock;
    clock.uses_counter = true;
    clock.multiplier = static_cast<std::uint64_t>(std::llround(1e3 / mhz * 0x1p32));
    clock.base_ticks = 123'456'789'000ULL;
    clock.base_ns = 5'000'000'000;
    return clock;
}

}  // namespace

TEST_CASE("without a counter ticks are nanoseconds") {
    const Clock clock;
    for (const std::uint64_t ns : {0ULL, 1ULL, 999ULL, 1'000'000'007ULL, 1ULL << 62U}) {
        CHECK(clock.duration_ns(ns) == ns);
        CHECK(clock.ticks_of(ns) == ns);
        CHECK(clock.to_ns(ns) == static_cast<std::int64_t>(ns));
    }
    CHECK(clock.source() == "clock_gettime(CLOCK_MONOTONIC)");
}

TEST_CASE("durations of a counter are exact to a nanosecond in a day") {
    for (const double mhz : {24.0, 100.0, 1000.0, 2100.0, 2995.2, 5100.0}) {
        const Clock clock = counter_of(mhz);
        for (const double seconds : {1e-6, 1e-3, 1.0, 3600.0, 86'400.0}) {
            const auto ticks = static_cast<std::uint64_t>(seconds * mhz * 1e6);
            const double exact = static_cast<double>(ticks) * (static_cast<double>(clock.multiplier) * 0x1p-32);
            CAPTURE(mhz);
            CAPTURE(seconds);
            CHECK(std::abs(static_cast<double>(clock.duration_ns(ticks)) - exact) <= 1.0 + exact * 1e-15);
            // The fixed point itself costs less than a part in 10^9.
            CHECK(exact == doctest::Approx(static_cast<double>(ticks) / mhz * 1e3).epsilon(1e-9));
        }
    }
}

TEST_CASE("ticks of a duration and back lose at most one tick") {
    for (const double mhz : {24.0, 2995.2}) {
        const Clock clock = counter_of(mhz);
        const auto tick_ns = static_cast<std::uint64_t>(1e3 / mhz) + 1;
        for (const std::uint64_t ns : {0ULL, 1ULL, 1000ULL, 123'456'789ULL, 86'400'000'000'000ULL}) {
            const std::uint64_t back = clock.duration_ns(clock.ticks_of(ns));
            CHECK(back <= ns);
            CHECK(ns - back <= tick_ns);
        }
    }
}

TEST_CASE("readings before the base are before its time") {
    const Clock clock = counter_of(2000);
    CHECK(clock.to_ns(clock.base_ticks) == clock.base_ns);
    CHECK(clock.to_ns(clock.base_ticks + 2000) == clock.base_ns + 1000);
    CHECK(clock.to_ns(clock.base_ticks - 2000) == clock.base_ns - 1000);
}

TEST_CASE("a calibrated clock runs with CLOCK_MONOTONIC") {
    Clock clock = Clock::calibrate();
    // 2 ms of calibration promise about a part in 10^4; recalibration over a longer time much more.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    clock.recalibrate();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::int64_t best = INT64_MAX;
    for (int i = 0; i < 20; ++i) {
        const std::int64_t before = Clock::monotonic_ns();
        const std::int64_t now = clock.now_ns();
        const std::int64_t after = Clock::monotonic_ns();
        const std::int64_t off = now < before ? before - now : now > after ? now - after : 0;
        best = std::min(best, off);
    }
    CHECK(best < 20'000);
}

TEST_CASE("recalibration reports and corrects the conversion error") {
    Clock clock = Clock::calibrate();
    if (!clock.uses_counter) {
        CHECK(clock.recalibrate() == 0);
        return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto right = static_cast<double>(clock.multiplier);
    clock.multiplier += clock.multiplier / 100;  // runs 1 % fast
    const auto elapsed = static_cast<double>(Clock::monotonic_ns() - clock.base_ns);
    const auto drift = static_cast<double>(clock.recalibrate());
    CHECK(drift == doctest::Approx(0.01 * elapsed).epsilon(0.05));
    CHECK(static_cast<double>(clock.multiplier) == doctest::Approx(right).epsilon(1e-3));
    CHECK(std::abs(clock.recalibrate()) < 20'000);
}

TEST_CASE("the environment can choose the system's clock") {
    ::setenv("SONDE_CLOCK", "monotonic", 1);
    const Clock clock = Clock::calibrate();
    ::unsetenv("SONDE_CLOCK");
    CHECK_FALSE(clock.uses_counter);
    const std::int64_t before = Clock::monotonic_ns();
    const std::int64_t now = clock.now_ns();
    CHECK(now >= before);
    CHECK(now <= Clock::monotonic_ns());
}

#if defined(__x86_64__)
TEST_CASE("clock uses the TSC if the kernel uses it") {
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string source;
    const char* wish = std::getenv("SONDE_CLOCK");
    if (!(file >> source) || source != "tsc" || wish != nullptr) {
        return;
    }
    const Clock clock = Clock::calibrate();
    CHECK(clock.uses_counter);
    CHECK(clock.source() == "tsc");
    CHECK(clock.base_ns > 0);
}
#endif
