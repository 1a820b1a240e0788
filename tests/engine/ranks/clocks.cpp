// SPDX-License-Identifier: Apache-2.0
// Offsets between clocks, from journeys whose truth is known.
#include "ranks/clock_alignment.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <vector>

using namespace sonde::ranks;

namespace {

/// A message there and back, given the true offset and the time of each way.
ClockExchange journey(std::int64_t sent, std::int64_t offset, std::int64_t out, std::int64_t work, std::int64_t back) {
    return {sent, sent + out + offset, sent + out + work + offset, sent + out + work + back};
}

}  // namespace

TEST_CASE("equal_delays_give_offset_with_half_round_trip_error") {
    const std::vector<ClockExchange> exchanges{journey(1000, 5'000'000, 200, 50, 200)};
    const ClockOffset offset = estimate_offset(exchanges);
    CHECK(offset.offset_ns == 5'000'000);
    CHECK(offset.error_ns == 200);
}

TEST_CASE("answer_time_of_peer_does_not_count") {
    CHECK(estimate_offset(std::vector{journey(0, -70, 100, 1'000'000'000, 100)}).error_ns == 100);
}

TEST_CASE("asymmetric_delay_stays_within_stated_error") {
    const ClockOffset offset = estimate_offset(std::vector{journey(0, 0, 1000, 0, 10)});
    CHECK(offset.offset_ns == 495);
    CHECK(offset.error_ns == 505);
}

TEST_CASE("fastest_directions_of_different_exchanges_combine") {
    // Neither journey alone is better than 505; together they pin the offset to 10 both ways.
    const std::vector<ClockExchange> both{journey(0, 123, 1000, 0, 10), journey(5000, 123, 10, 0, 1000)};
    const ClockOffset offset = estimate_offset(both);
    CHECK(offset.offset_ns == 123);
    CHECK(offset.error_ns == 10);
}

TEST_CASE("odd_width_is_rounded_to_cover_both_ends") {
    const ClockOffset offset = estimate_offset(std::vector{journey(0, 0, 0, 0, 3)});
    CHECK(offset.offset_ns - offset.error_ns <= -3);
    CHECK(offset.offset_ns + offset.error_ns >= 0);
}

TEST_CASE("true_offset_is_within_stated_error") {
    std::mt19937_64 random(7);
    for (int trial = 0; trial < 2000; ++trial) {
        const auto up_to = [&](std::int64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
        const std::int64_t truth = up_to(2'000'000'000'000) - 1'000'000'000'000;
        std::vector<ClockExchange> exchanges;
        std::int64_t time = up_to(1'000'000'000);
        for (std::int64_t count = 1 + up_to(31); count > 0; --count) {
            exchanges.push_back(journey(time, truth, up_to(100'000), up_to(1000), up_to(3000)));
            time += 200'000;
        }
        const ClockOffset offset = estimate_offset(exchanges);
        REQUIRE(std::abs(offset.offset_ns - truth) <= offset.error_ns);
        REQUIRE(offset.error_ns <= 51'500);
    }
}

TEST_CASE("shortest_round_trip_decides_for_drifting_clocks") {
    const std::vector<ClockExchange> drifting{journey(0, 0, 50, 0, 50), journey(1'000'000, 5000, 20, 0, 30)};
    const ClockOffset offset = estimate_offset(drifting);
    CHECK(std::abs(offset.offset_ns - 5000) <= 25);
    CHECK(offset.error_ns == 25);
}

TEST_CASE("offsets_and_errors_add_through_third_clock") {
    const ClockOffset both = add_offsets({-300, 20}, {1000, 15});
    CHECK(both.offset_ns == 700);
    CHECK(both.error_ns == 35);
}
