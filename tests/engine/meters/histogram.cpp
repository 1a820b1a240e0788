// SPDX-License-Identifier: Apache-2.0
// The latency histogram: what its buckets promise, against exact arithmetic on the same values.
#include "meters/histogram.hpp"
#include "patterns/permutation.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

using sonde::meters::Histogram;

namespace {

constexpr double hour_ns = 3600e9;

/// `n` values whose logarithms are uniform from 100 ns to 1 h.
std::vector<std::uint64_t> log_uniform(std::size_t n, std::uint64_t seed) {
    std::vector<std::uint64_t> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double u = static_cast<double>(sonde::patterns::mix64(seed + i) >> 11U) * 0x1p-53;
        values[i] = static_cast<std::uint64_t>(100.0 * std::pow(hour_ns / 100.0, u));
    }
    return values;
}

std::unique_ptr<Histogram> histogram_of(const std::vector<std::uint64_t>& values) {
    auto histogram = std::make_unique<Histogram>();
    for (const std::uint64_t value : values) {
        histogram->add(value);
    }
    return histogram;
}

double relative_error(std::uint64_t got, std::uint64_t wanted) {
    return std::abs(static_cast<double>(got) - static_cast<double>(wanted)) / static_cast<double>(wanted);
}

}  // namespace

TEST_CASE("latencies from 100 ns to 1 h are accurate within 1 %") {
    double worst = 0;
    for (double value = 100; value <= hour_ns; value *= 1.003) {
        const auto ns = static_cast<std::uint64_t>(value);
        Histogram histogram;
        histogram.add(ns / 2);
        histogram.add(ns);
        histogram.add(ns * 2);
        worst = std::max(worst, relative_error(histogram.quantile(0.5), ns));
    }
    CHECK(worst <= 0.008);
    CHECK(worst > 0.003);  // the bound is of the right size, not an accident of the values
}

TEST_CASE("buckets are contiguous and contain their value range") {
    for (std::size_t bucket = 0; bucket < Histogram::buckets; ++bucket) {
        const std::uint64_t low = Histogram::bucket_begin(bucket);
        const std::uint64_t high = Histogram::bucket_begin(bucket + 1);
        CAPTURE(bucket);
        REQUIRE(high > low);
        REQUIRE(Histogram::get_bucket_index(low) == bucket);
        REQUIRE(Histogram::get_bucket_index(high - 1) == bucket);
    }
    CHECK(Histogram::bucket_begin(Histogram::buckets) == 1ULL << Histogram::max_value_bits);
}

TEST_CASE("counting a value on the hot path is adding it") {
    std::vector<std::uint64_t> values(300);
    std::iota(values.begin(), values.end(), std::uint64_t{0});
    for (std::size_t bucket = 0; bucket <= Histogram::buckets; ++bucket) {
        values.insert(values.end(), {Histogram::bucket_begin(bucket), Histogram::bucket_begin(bucket + 1) - 1});
    }
    // Beyond the last bucket, where a floating point number rounds, and where it takes a value for a negative one.
    for (const unsigned bit : {42U, 53U, 54U, 62U, 63U}) {
        values.insert(values.end(), {(1ULL << bit) - 1, 1ULL << bit, (1ULL << bit) + 1});
    }
    values.push_back(~0ULL);
    for (const std::uint64_t value : values) {
        Histogram added, counted;
        added.add(value);
        counted.count_in_bucket(value);
        counted.add_summary(value, value, value);
        CAPTURE(value);
        REQUIRE(counted.overflow == added.overflow);
        REQUIRE(std::equal(std::begin(added.counts), std::end(added.counts), std::begin(counted.counts)));
        REQUIRE(counted.sum_ns == added.sum_ns);
        REQUIRE(counted.min_ns == added.min_ns);
        REQUIRE(counted.max_ns == added.max_ns);
    }
}

TEST_CASE("quantiles agree with the sorted values") {
    std::vector<std::uint64_t> values = log_uniform(50'000, 9);
    const auto histogram = histogram_of(values);
    std::sort(values.begin(), values.end());
    for (const double q : {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
        CAPTURE(q);
        CHECK(relative_error(histogram->quantile(q), values[rank - 1]) <= 0.008);
    }
    CHECK(relative_error(histogram->quantile(0.0), values.front()) <= 0.008);
    CHECK(histogram->quantile(1.0) == values.back());
}

TEST_CASE("count, sum, smallest and largest are exact") {
    const std::vector<std::uint64_t> values = log_uniform(10'000, 4);
    const auto histogram = histogram_of(values);
    CHECK(histogram->count() == values.size());
    CHECK(histogram->sum_ns == std::accumulate(values.begin(), values.end(), std::uint64_t{0}));
    CHECK(histogram->min_ns == *std::min_element(values.begin(), values.end()));
    CHECK(histogram->max_ns == *std::max_element(values.begin(), values.end()));
    std::uint64_t total = 0;
    for (const Histogram::Bucket& bucket : histogram->list_filled_buckets()) {
        CHECK(bucket.low_ns < bucket.high_ns);
        CHECK(bucket.count > 0);
        total += bucket.count;
    }
    CHECK(total == values.size());
}

TEST_CASE("merging equals adding all values to a single histogram") {
    const std::vector<std::uint64_t> all = log_uniform(9000, 5);
    const auto expected = histogram_of(all);
    const auto part = [&all](std::ptrdiff_t from, std::ptrdiff_t to) {
        return histogram_of({all.begin() + from, all.begin() + to});
    };
    auto joined = part(0, 1000);
    auto right = part(4000, 9000);
    right->merge(*part(1000, 4000));
    joined->merge(*right);
    joined->merge(Histogram{});  // an idle task changes nothing, not even the minimum
    CHECK(joined->sum_ns == expected->sum_ns);
    CHECK(joined->min_ns == expected->min_ns);
    CHECK(joined->max_ns == expected->max_ns);
    CHECK(std::equal(std::begin(joined->counts), std::end(joined->counts), std::begin(expected->counts)));
}

TEST_CASE("latency beyond the last bucket is counted as overflow") {
    Histogram histogram;
    histogram.add(1000);
    const std::uint64_t day = 86'400'000'000'000;
    histogram.add(day);
    histogram.add(day + 1);
    CHECK(histogram.overflow == 2);
    CHECK(histogram.count() == 3);
    CHECK(histogram.max_ns == day + 1);
    CHECK(histogram.sum_ns == 2 * day + 1001);
    CHECK(histogram.quantile(0.99) == day + 1);
    CHECK(relative_error(histogram.quantile(0.1), 1000) <= 0.008);
}

TEST_CASE("quantile beyond the buckets is the longest operation") {
    Histogram histogram;
    histogram.add(1000);
    for (std::uint64_t i = 0; i < 9; ++i) {
        histogram.add((1ULL << 50U) + i);
    }
    CHECK(histogram.quantile(0.5) == (1ULL << 50U) + 8);
}

TEST_CASE("an empty histogram answers zero") {
    const Histogram histogram;
    CHECK(histogram.count() == 0);
    CHECK(histogram.quantile(0.5) == 0);
    CHECK(histogram.list_filled_buckets().empty());
}

TEST_CASE("latency of zero is a valid value") {
    Histogram histogram;
    histogram.add(0);
    CHECK(histogram.count() == 1);
    CHECK(histogram.min_ns == 0);
    CHECK(histogram.quantile(0.5) == 0);
}

TEST_CASE("zeroed memory stays untouched, used memory is cleared") {
    const auto memory = std::make_unique<Histogram>();
    memory->min_ns = 0;  // as zeroed pages are
    memory->clear();
    CHECK(memory->min_ns > memory->max_ns);
    for (const std::uint64_t value : log_uniform(5000, 8)) {
        memory->add(value);
    }
    memory->add(0);
    memory->add(1ULL << 60U);
    memory->clear();
    CHECK(memory->count() == 0);
    CHECK(memory->sum_ns == 0);
    CHECK(memory->min_ns == Histogram{}.min_ns);
    CHECK(memory->max_ns == 0);
    memory->add(1000);
    CHECK(memory->min_ns == 1000);
    CHECK(memory->max_ns == 1000);
    CHECK(memory->list_filled_buckets().size() == 1);
}
