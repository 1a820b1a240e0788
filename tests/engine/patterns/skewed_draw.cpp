// SPDX-License-Identifier: Apache-2.0
// Distributions of random accesses against their formulas, by chi-square tests with fixed seeds.
#include "patterns/skewed_draw.hpp"
#include "patterns/geometry.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

using sonde::patterns::Geometry;
using sonde::patterns::mix64;
using sonde::patterns::Permutation;
using sonde::patterns::SkewedDraw;
using sonde::plan::Distribution;
using sonde::plan::DistributionKind;

namespace {

constexpr std::uint64_t draws = 400'000;
constexpr std::uint64_t key = 77;

/// Upper 1e-4 quantile of chi-square with `degrees` (E. B. Wilson, M. M. Hilferty, PNAS 17 (1931) 684).
double critical_value(double degrees) {
    constexpr double z = 3.719;
    return degrees * std::pow(1 - 2 / (9 * degrees) + z * std::sqrt(2 / (9 * degrees)), 3);
}

/// Whether the counts agree with the weights. Cells with fewer than 10 expected draws are one cell.
bool agrees(const std::vector<std::uint64_t>& counts, const std::vector<double>& weights) {
    REQUIRE(counts.size() == weights.size());
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
    double chi_square = 0;
    double rare_expected = 0;
    double rare_count = 0;
    double cells = 0;
    const auto add_cell = [&](double count, double expected) {
        chi_square += (count - expected) * (count - expected) / expected;
        ++cells;
    };
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double expected = total * weights[i] / all;
        if (expected >= 10) {
            add_cell(static_cast<double>(counts[i]), expected);
        } else {
            rare_expected += expected;
            rare_count += static_cast<double>(counts[i]);
        }
    }
    if (rare_expected > 0) {
        add_cell(rare_count, std::max(rare_expected, 1e-9));
    }
    REQUIRE(cells > 2);
    return chi_square < critical_value(cells - 1);
}

std::vector<std::uint64_t> count_slots(const Distribution& distribution, std::uint64_t n) {
    const SkewedDraw draw(distribution, n, key);
    std::vector<std::uint64_t> counts(n);
    for (std::uint64_t i = 0; i < draws; ++i) {
        const std::uint64_t slot = draw(mix64(mix64(5) ^ i));
        REQUIRE(slot < n);
        ++counts[slot];
    }
    return counts;
}

/// Weights by slot, from weights by rank: popular slots lie where the permutation has them.
std::vector<double> place_ranks(std::uint64_t n, const std::function<double(std::uint64_t)>& weight_of_rank) {
    const Permutation place(n, mix64(key ^ 0x736b6577ULL));
    std::vector<double> weights(n);
    for (std::uint64_t rank = 0; rank < n; ++rank) {
        weights[place(rank)] = weight_of_rank(rank);
    }
    return weights;
}

std::vector<double> weigh_zipf(std::uint64_t n, double theta) {
    return place_ranks(n, [theta](std::uint64_t rank) { return std::pow(static_cast<double>(rank + 1), -theta); });
}

/// The first fraction f of the ranks gets f^(log(1 - share) / log(share)) of the draws.
std::vector<double> weigh_pareto(std::uint64_t n, double share) {
    const double exponent = std::log(1 - share) / std::log(share);
    const auto part = [&](std::uint64_t ranks) {
        return std::pow(static_cast<double>(ranks) / static_cast<double>(n), exponent);
    };
    return place_ranks(n, [&](std::uint64_t rank) { return part(rank + 1) - part(rank); });
}

std::vector<double> weigh_normal(std::uint64_t n, double deviation) {
    std::vector<double> weights;
    const auto below = [&](std::uint64_t slot) {
        const double z = (static_cast<double>(slot) / static_cast<double>(n) - 0.5) / deviation;
        return 0.5 * std::erfc(-z / std::sqrt(2.0));
    };
    for (std::uint64_t slot = 0; slot < n; ++slot) {
        weights.push_back(below(slot + 1) - below(slot));
    }
    return weights;
}

Distribution zipf(double theta) {
    return {DistributionKind::zipf, theta, {}, {}};
}
Distribution pareto(double share) {
    return {DistributionKind::pareto, {}, share, {}};
}
Distribution normal(double deviation) {
    return {DistributionKind::normal, {}, {}, deviation};
}

}  // namespace

TEST_CASE("zipf_draws_agree_with_the_power_law") {
    for (const std::uint64_t n : {7U, 300U, 5000U}) {
        for (const double theta : {0.5, 1.0, 1.2, 2.0}) {
            CAPTURE(n);
            CAPTURE(theta);
            const auto counts = count_slots(zipf(theta), n);
            CHECK(agrees(counts, weigh_zipf(n, theta)));
            CHECK_FALSE(agrees(counts, weigh_zipf(n, theta + 0.05)));
        }
    }
}

TEST_CASE("pareto_draws_agree_with_self_similarity") {
    for (const std::uint64_t n : {10U, 300U, 5000U}) {
        for (const double share : {0.1, 0.2, 0.4}) {
            CAPTURE(n);
            CAPTURE(share);
            const auto counts = count_slots(pareto(share), n);
            CHECK(agrees(counts, weigh_pareto(n, share)));
            CHECK_FALSE(agrees(counts, weigh_pareto(n, share + 0.02)));
        }
    }
}

TEST_CASE("pareto_share_gets_the_other_share_of_draws") {
    const auto counts = count_slots(pareto(0.2), 1000);
    const Permutation place(1000, mix64(key ^ 0x736b6577ULL));
    std::uint64_t popular = 0;
    for (std::uint64_t rank = 0; rank < 200; ++rank) {
        popular += counts[place(rank)];
    }
    CHECK(static_cast<double>(popular) / static_cast<double>(draws) == doctest::Approx(0.8).epsilon(0.01));
}

TEST_CASE("normal_draws_agree_with_the_truncated_bell") {
    for (const std::uint64_t n : {9U, 300U, 5000U}) {
        for (const double deviation : {0.05, 0.1, 0.5}) {
            CAPTURE(n);
            CAPTURE(deviation);
            const auto counts = count_slots(normal(deviation), n);
            CHECK(agrees(counts, weigh_normal(n, deviation)));
            CHECK_FALSE(agrees(counts, weigh_normal(n, deviation * 1.3)));
        }
    }
}

TEST_CASE("uniform_draws_hit_every_slot_equally") {
    const auto counts = count_slots({DistributionKind::uniform, {}, {}, {}}, 300);
    CHECK(agrees(counts, std::vector<double>(300, 1.0)));
    CHECK_FALSE(agrees(counts, weigh_zipf(300, 0.1)));
}

TEST_CASE("single_slot_is_always_selected") {
    for (const Distribution& distribution : {zipf(1.2), pareto(0.2), normal(1.0)}) {
        CHECK(count_slots(distribution, 1) == std::vector<std::uint64_t>{draws});
    }
}

namespace {

sonde::plan::Access random_access(std::uint64_t transfer, std::uint64_t slots) {
    sonde::plan::Access access;
    access.transfer = transfer;
    access.block = transfer * slots;
    access.order = sonde::plan::AccessOrder::random_replace;
    return access;
}

}  // namespace

TEST_CASE("popular_slots_are_the_same_in_every_pass") {
    sonde::plan::Access access = random_access(4096, 1000);
    access.distribution = zipf(1.5);
    const Geometry geometry(access, 1, {1, 0}, 3);
    std::vector<std::uint64_t> popular;
    for (const std::uint64_t pass : {0U, 1U, 2U}) {
        std::map<std::uint64_t, int> counts;
        for (std::uint64_t i = 0; i < geometry.operation_count(); ++i) {
            ++counts[geometry.offset_of(i, pass)];
        }
        const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
        popular.push_back(std::max_element(counts.begin(), counts.end(), by_count)->first);
    }
    CHECK(popular[0] == popular[1]);
    CHECK(popular[0] == popular[2]);
}

TEST_CASE("scope_file_gives_all_tasks_the_same_popular_slot") {
    sonde::plan::Access access = random_access(4096, 64);
    access.distribution = zipf(3);
    for (const sonde::plan::PermutationScope scope :
         {sonde::plan::PermutationScope::file, sonde::plan::PermutationScope::task}) {
        access.scope = scope;
        std::map<std::uint64_t, int> all;
        for (std::uint64_t task = 0; task < 4; ++task) {
            const Geometry geometry(access, 50, {4, task}, 3);
            std::map<std::uint64_t, int> counts;
            for (std::uint64_t i = 0; i < geometry.operation_count(); ++i) {
                ++counts[geometry.offset_of(i)];
            }
            const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
            ++all[std::max_element(counts.begin(), counts.end(), by_count)->first];
        }
        CHECK(all.size() == (scope == sonde::plan::PermutationScope::file ? 1 : 4));
    }
}

TEST_CASE("mixed_sizes_have_their_percentages_and_stay_inside") {
    sonde::plan::Access access = random_access(65536, 64);
    access.sizes = {{4096, 60}, {16384, 25}, {65536, 10}, {24576, 5}};
    const Geometry geometry(access, 2000, {3, 1}, 9);
    std::map<std::uint32_t, std::uint64_t> counts;
    std::vector<std::uint64_t> offsets(geometry.operation_count());
    std::vector<std::uint32_t> lengths(geometry.operation_count());
    std::vector<std::uint64_t> places(16);
    geometry.fill_offsets(0, 0, offsets, lengths);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        const std::uint64_t slot = geometry.offset_of(i);
        REQUIRE(offsets[i] >= slot);
        REQUIRE(offsets[i] + lengths[i] <= slot + 65536);
        REQUIRE((offsets[i] - slot) % lengths[i] == 0);
        ++counts[lengths[i]];
        bytes += lengths[i];
        if (lengths[i] == 4096) {
            ++places[(offsets[i] - slot) / 4096];
        }
    }
    const std::vector<std::uint64_t> by_size{counts[4096], counts[16384], counts[65536], counts[24576]};
    CHECK(agrees(by_size, {60, 25, 10, 5}));
    CHECK_FALSE(agrees(by_size, {59, 26, 10, 5}));
    CHECK(agrees(places, std::vector<double>(16, 1.0)));
    CHECK(static_cast<double>(bytes) ==
          doctest::Approx(static_cast<double>(access.bytes_of(geometry.operation_count()))).epsilon(0.02));
}

TEST_CASE("batches_of_mixed_sizes_equal_the_entire_pass") {
    sonde::plan::Access access = random_access(8192, 10);
    access.sizes = {{512, 50}, {8192, 50}};
    const Geometry geometry(access, 30, {1, 0}, 9);
    std::vector<std::uint64_t> offsets(300);
    std::vector<std::uint32_t> lengths(300);
    geometry.fill_offsets(0, 2, offsets, lengths);
    for (std::uint64_t i = 0; i < 300; i += 7) {
        std::uint64_t offset = 0;
        std::uint32_t length = 0;
        geometry.fill_offsets(i, 2, {&offset, 1}, {&length, 1});
        CHECK(offset == offsets[i]);
        CHECK(length == lengths[i]);
    }
}
