// SPDX-License-Identifier: Apache-2.0
// What is counted of a target: slices that widen and keep sums, latencies, and the same sums after joining.
#include "meters/target_board.hpp"
#include "results/target_lines.hpp"
#include "results/targets.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using sonde::meters::TargetBoard;
using sonde::meters::TargetCell;
using sonde::meters::TargetLatency;
using sonde::meters::TargetMeter;
using sonde::results::TargetCounts;
using sonde::results::Targets;

namespace {

TargetCell row(const TargetMeter& meter, std::uint32_t at, std::uint32_t target = 0) {
    return meter.cell(1, at, target);
}

std::uint32_t add_target(TargetMeter& meter, const std::string& name) {
    const std::uint32_t number = meter.number_of(name);
    meter.make_room();
    return number;
}

std::unique_ptr<TargetBoard> board_of(const std::vector<const TargetMeter*>& meters, std::uint32_t doublings) {
    auto board = std::make_unique<TargetBoard>();
    for (const TargetMeter* meter : meters) {
        board->add({meter, 2, 1}, doublings);
    }
    return board;
}

}  // namespace

TEST_CASE("bytes are spread over the slices that an operation lasts, and it counts where it ends") {
    TargetMeter meter(1000, 100);
    const std::uint32_t target = add_target(meter, "OST0");
    meter.add_single(1, target, 1050, 1250, 200, 400);  // 50 in the first, 100 in the second, 50 in the third
    CHECK(row(meter, 0).bytes == 100);
    CHECK(row(meter, 1).bytes == 200);
    CHECK(row(meter, 2).bytes == 100);
    CHECK(row(meter, 0).single_ops == 0);
    CHECK(row(meter, 2).single_ops == 1);
    CHECK(row(meter, 2).single_ns == 200);
    meter.add_single(1, target, 1010, 1090, 80, 8);  // back in the first: streams that take turns may do so
    CHECK(row(meter, 0).bytes == 108);
    CHECK(row(meter, 0).single_ops == 1);
    CHECK(meter.longest_ns(1, target) == 200);
}

TEST_CASE("slices widen when time goes on and when targets come, and their sums stay") {
    TargetMeter meter(0, 10);
    std::mt19937 random(3);
    std::vector<std::uint64_t> bytes;
    for (std::uint64_t i = 0; i < 300; ++i) {
        const std::string name = "OST" + std::to_string(i % (1 + i / 2));
        const std::uint32_t target = add_target(meter, name);
        bytes.resize(std::max<std::size_t>(bytes.size(), target + 1));
        const std::uint64_t moved = random() % 1000;
        bytes[target] += moved;
        meter.add_part(1, target, i * 37, i * 37 + random() % 90, moved, true);
    }
    REQUIRE(meter.names().size() > 100);
    CHECK(meter.rows() == 16);
    CHECK((std::uint64_t{10} << meter.doublings()) * meter.rows() >= 299 * 37);
    for (std::uint32_t target = 0; target < bytes.size(); ++target) {
        std::uint64_t sum = 0;
        for (std::uint32_t at = 0; at < meter.rows(); ++at) {
            sum += row(meter, at, target).bytes;
        }
        CHECK(sum == bytes[target]);
    }
}

TEST_CASE("a meter knows no more targets than it can hold") {
    TargetMeter meter(0, 10);
    for (std::size_t i = 0; i < TargetMeter::most_targets; ++i) {
        CHECK(meter.number_of("OST" + std::to_string(i)) == i);
    }
    CHECK(meter.number_of("one more") == TargetMeter::none);
    CHECK(meter.number_of("OST7") == 7);
}

TEST_CASE("latency buckets hold what lies between their ends") {
    for (std::uint64_t ns = 0; ns < 5000; ++ns) {
        const std::size_t bucket = TargetLatency::bucket_of(ns);
        REQUIRE(TargetLatency::low(bucket) <= ns);
        REQUIRE(ns < TargetLatency::low(bucket + 1));
    }
    CHECK(TargetLatency::bucket_of((1ULL << TargetLatency::top_bit) - 1) == TargetLatency::buckets - 1);
    CHECK(TargetLatency::bucket_of(~0ULL) == TargetLatency::buckets - 1);
}

TEST_CASE("a quantile is within 6 % of the value of its rank") {
    TargetMeter meter(0, 1'000'000);
    const std::uint32_t target = add_target(meter, "OST0");
    for (std::uint64_t i = 1; i <= 10'000; ++i) {
        meter.add_single(0, target, 0, 1, i * 1000, 1);
    }
    const Targets targets = Targets::of(*board_of({&meter}, 0), 1);
    const TargetCounts& counts = targets.served.at("OST0")[0];
    for (const double q : {0.5, 0.9, 0.99}) {
        CHECK(static_cast<double>(counts.quantile(q)) == doctest::Approx(q * 1e7).epsilon(0.063));
    }
    CHECK(counts.longest_ns == 10'000'000);
    CHECK(counts.quantile(1.0) <= 10'000'000);
}

TEST_CASE("streams and nodes join to the same sums, whatever the width of their slices") {
    TargetMeter narrow(0, 100);
    TargetMeter wide(0, 100);
    const std::uint32_t a = add_target(narrow, "A");
    const std::uint32_t b = add_target(wide, "B");
    const std::uint32_t also_a = add_target(wide, "A");
    narrow.add_single(0, a, 110, 150, 40, 7);
    wide.add_single(0, also_a, 500, 90'000, 5, 1000);  // 64 slices of 100 are over: they have doubled
    wide.add_part(1, b, 500, 600, 3, true);
    REQUIRE(wide.doublings() > 0);
    const std::int64_t width = std::int64_t{100} << wide.doublings();
    const auto together = board_of({&narrow, &wide}, wide.doublings());
    const Targets one = Targets::of(*together, width);
    Targets joined = Targets::of(*board_of({&narrow}, wide.doublings()), width);
    joined.join(Targets::unpack(Targets::of(*board_of({&wide}, wide.doublings()), width).pack()));
    CHECK(one.pack() == joined.pack());
    CHECK(one.files == 4);
    CHECK(one.known == 2);
    CHECK(one.bytes(0) == 1007);
    CHECK(one.bytes(1) == 3);
    CHECK(one.served.at("A")[0].sum().single_ops == 2);
    CHECK(one.served.at("A")[0].longest_ns == 40);
    CHECK(one.served.at("B")[1].sum().split_ops == 1);
    CHECK_FALSE(one.served.at("B")[0].used());

    together->clear();
    CHECK(Targets::of(*together, width).served.empty());
}

TEST_CASE("the series of many targets together have at most 65,536 slices and keep their sums") {
    sonde::results::Totals totals;
    totals.targets.slice_ns = 1000;
    for (int i = 0; i < 2048; ++i) {
        TargetCounts& counts = totals.targets.served["OST" + std::to_string(i)][0];
        counts.slices.resize(64, {3, 1, 2, 0});
    }
    const auto lines = sonde::results::target_series_lines(totals);
    REQUIRE(lines.size() == 2048);
    for (const auto& line : lines) {
        CHECK(line["bytes"].size() == 32);
        CHECK(line["bytes"][0] == 6);
        CHECK(line["slice_s"] == 2e-6);
        CHECK(line["single_ns"][0] == 4);
    }
    const auto table = sonde::results::target_line(totals);
    CHECK(table["rows"].size() == 2048);
    CHECK(table["rows"][0][2] == 192);
    CHECK(sonde::results::target_line(sonde::results::Totals()).is_null());
}
