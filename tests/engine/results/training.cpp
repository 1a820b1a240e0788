// SPDX-License-Identifier: Apache-2.0
// Utilization of several accelerators.
#include "results/training.hpp"

#include <doctest/doctest.h>

using sonde::meters::TrainingMeter;
using sonde::results::training_json;
using sonde::results::TrainingTotals;

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

TrainingTotals two_accelerators() {
    TrainingTotals totals;
    totals.add({.batches = 11,
                .samples = 44,
                .rated_samples = 40,
                .computation_ns = 9 * second_ns,
                .steps_ns = 10 * second_ns,
                .first_batch_ns = second_ns});
    totals.add({.batches = 11,
                .samples = 44,
                .rated_samples = 40,
                .computation_ns = 9 * second_ns,
                .steps_ns = 20 * second_ns,
                .first_batch_ns = 3 * second_ns});
    return totals;
}

}  // namespace

TEST_CASE("utilization_is_the_mean_over_accelerators") {
    const auto line = training_json(two_accelerators(), 1000, -1);
    CHECK(line.at("accelerators") == 2);
    CHECK(line.at("batches") == 22);
    CHECK(line.at("samples") == 88);
    CHECK(line.at("utilization").get<double>() == doctest::Approx((0.9 + 0.45) / 2));
    CHECK(line.at("lowest_utilization").get<double>() == doctest::Approx(0.45));
    CHECK(line.at("samples_per_s").get<double>() == doctest::Approx(4 + 2));
    CHECK(line.at("first_batch_s") == 3.0);
    CHECK_FALSE(line.contains("storage_bytes"));
}

TEST_CASE("read_bytes_are_divided_by_cached_share") {
    const auto line = training_json(two_accelerators(), 1000, 0.25);
    CHECK(line.at("cached_bytes") == 250);
    CHECK(line.at("storage_bytes") == 750);
}

TEST_CASE("accelerator_with_one_batch_is_not_rated") {
    TrainingTotals totals;
    totals.add({.batches = 1,
                .samples = 4,
                .rated_samples = 0,
                .computation_ns = 0,
                .steps_ns = 0,
                .first_batch_ns = second_ns});
    totals.add({});
    const auto line = training_json(totals, 10, -1);
    CHECK(line.at("accelerators") == 1);
    CHECK_FALSE(line.contains("utilization"));
    CHECK_FALSE(line.contains("samples_per_s"));
}

TEST_CASE("joined_and_packed_totals_equal_the_sum") {
    TrainingTotals both = two_accelerators();
    both.merge(two_accelerators());
    const auto line = training_json(TrainingTotals::unpack(both.pack()), 1000, 0.5);
    CHECK(line == training_json(both, 1000, 0.5));
    CHECK(line.at("accelerators") == 4);
    CHECK(line.at("utilization").get<double>() == doctest::Approx((0.9 + 0.45) / 2));
    CHECK(line.at("samples_per_s").get<double>() == doctest::Approx(12));
}
