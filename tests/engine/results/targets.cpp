// SPDX-License-Identifier: Apache-2.0
// Figures of storage targets: the same sums however they are joined, and the lines of the record.
#include "results/targets.hpp"
#include "../meters/named_targets.hpp"
#include "results/target_lines.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using nlohmann::ordered_json;
using sonde::meters::TargetLatency;
using sonde::meters::TargetMeter;
using sonde::results::make_target_line;
using sonde::results::make_target_series_lines;
using sonde::results::TargetStatistics;
using sonde::results::TargetTotals;
using sonde::results::Totals;
using sonde::tests::add_target;
using sonde::tests::board_of;

namespace {

/// `targets` targets that were read in `slices` slices of 1 us, each of 3 bytes.
Totals many(int targets, std::size_t slices) {
    Totals totals;
    totals.targets.slice_ns = 1000;
    for (int i = 0; i < targets; ++i) {
        totals.targets.statistics_by_target["OST" + std::to_string(i)][0].slices.resize(slices, {3, 1, 2, 0});
    }
    return totals;
}

}  // namespace

TEST_CASE("target_quantile_is_within_6_percent") {
    TargetMeter meter(0, 1'000'000);
    const std::uint32_t target = add_target(meter, "OST0");
    for (std::uint64_t i = 1; i <= 10'000; ++i) {
        meter.add_single(0, target, 0, 1, i * 1000, 1);
    }
    const TargetTotals targets = TargetTotals::from_board(*board_of({{&meter, 2, 1}}, 0), 1);
    const TargetStatistics& counts = targets.statistics_by_target.at("OST0")[0];
    for (const double q : {0.5, 0.9, 0.99}) {
        CHECK(static_cast<double>(counts.quantile(q)) == doctest::Approx(q * 1e7).epsilon(0.063));
    }
    CHECK(counts.longest_ns == 10'000'000);
    CHECK(counts.quantile(1.0) <= 10'000'000);
}

TEST_CASE("target_sums_do_not_depend_on_slice_width") {
    TargetMeter narrow(0, 100);
    TargetMeter wide(0, 100);
    const std::uint32_t a = add_target(narrow, "A");
    const std::uint32_t b = add_target(wide, "B");
    const std::uint32_t also_a = add_target(wide, "A");
    narrow.add_single(0, a, 110, 150, 40, 7);
    wide.add_single(0, also_a, 500, 90'000, 5, 1000);  // 64 slices of 100 are over: they have doubled
    wide.add_split(1, b, 500, 600, 3, true);
    REQUIRE(wide.doublings() > 0);
    const std::int64_t width = std::int64_t{100} << wide.doublings();
    const auto together = board_of({{&narrow, 2, 1}, {&wide, 2, 1}}, wide.doublings());
    const TargetTotals at_once = TargetTotals::from_board(*together, width);
    TargetTotals joined = TargetTotals::from_board(*board_of({{&narrow, 2, 1}}, wide.doublings()), width);
    joined.merge(
        TargetTotals::unpack(TargetTotals::from_board(*board_of({{&wide, 2, 1}}, wide.doublings()), width).pack()));
    CHECK(at_once.pack() == joined.pack());
    CHECK(at_once.opened_files == 4);
    CHECK(at_once.known_layouts == 2);
    CHECK(at_once.sum_bytes(0) == 1007);
    CHECK(at_once.sum_bytes(1) == 3);
    CHECK(at_once.statistics_by_target.at("A")[0].sum_slices().single_ops == 2);
    CHECK(at_once.statistics_by_target.at("A")[0].longest_ns == 40);
    CHECK(at_once.statistics_by_target.at("B")[1].sum_slices().split_ops == 1);
    CHECK_FALSE(at_once.statistics_by_target.at("B")[0].is_used());

    together->clear();
    CHECK(TargetTotals::from_board(*together, width).statistics_by_target.empty());
}

TEST_CASE("quantile_rank_rounds_up_and_is_at_most_longest") {
    TargetStatistics counts;
    CHECK(counts.quantile(0.5) == 0);
    counts.operations_by_latency_bucket = {{5, 2}, {9, 2}};  // of 5 and 9 ns: each value below 16 ns has one bucket
    counts.longest_ns = 9;
    CHECK(counts.quantile(0.0) == 5);
    CHECK(counts.quantile(0.5) == 5);
    CHECK(counts.quantile(0.51) == 9);
    CHECK(counts.quantile(1.0) == 9);
    const std::size_t wide = TargetLatency::get_bucket_index(1000);
    REQUIRE(TargetLatency::bucket_begin(wide) == 960);
    REQUIRE(TargetLatency::bucket_begin(wide + 1) == 1024);
    counts.operations_by_latency_bucket = {{static_cast<std::uint32_t>(wide), 1}};
    counts.longest_ns = 1020;
    CHECK(counts.quantile(0.5) == 991);  // the middle of 960 to 1,023
    counts.longest_ns = 970;
    CHECK(counts.quantile(0.5) == 970);
}

TEST_CASE("target table has a row per kind and counts located bytes") {
    Totals totals;
    totals.bytes = {1000, 500};
    totals.targets.opened_files = 4;
    totals.targets.known_layouts = 3;
    TargetStatistics& read = totals.targets.statistics_by_target["A"][0];
    read.operations_by_latency_bucket = {{5, 9}, {9, 1}};
    read.longest_ns = 9;
    read.slices = {{100, 4, 20, 0}, {}, {50, 6, 34, 2}};
    totals.targets.statistics_by_target["B"][1].slices = {{7, 0, 0, 3}};  // nothing but operations over several targets
    const ordered_json line = make_target_line(totals);
    CHECK(line["files"] == 4);
    CHECK(line["known_files"] == 3);
    CHECK(line["bytes"] == 1500);
    CHECK(line["known_bytes"] == 157);
    CHECK(line["columns"].size() == 10);
    REQUIRE(line["rows"].size() == 2);
    CHECK(line["rows"][0] == ordered_json{"A", "read", 150, 12, 10, 54, 5, 5, 9, 9});
    CHECK(line["rows"][1] == ordered_json{"B", "write", 7, 3, 0, 0, nullptr, nullptr, nullptr, nullptr});
    CHECK(make_target_line(Totals()).is_null());
}

TEST_CASE("target_series_has_each_slice") {
    Totals totals;
    totals.targets.slice_ns = 250'000'000;
    totals.targets.statistics_by_target["A"][1].slices = {{100, 4, 20, 1}, {}, {50, 6, 34, 2}};
    const auto lines = make_target_series_lines(totals);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] == ordered_json{{"scope", "target"},
                                   {"target", "A"},
                                   {"kind", "write"},
                                   {"slice_s", 0.25},
                                   {"bytes", {100, 0, 50}},
                                   {"ops", {5, 0, 8}},
                                   {"single_ops", {4, 0, 6}},
                                   {"single_ns", {20, 0, 34}}});
    CHECK(make_target_series_lines(Totals()).empty());
}

TEST_CASE("target_series_have_at_most_65536_slices") {
    const auto exactly = make_target_series_lines(many(1024, 64));
    REQUIRE(exactly.size() == 1024);
    CHECK(exactly[0]["bytes"].size() == 64);
    CHECK(exactly[0]["slice_s"] == 1e-6);
    const auto lines = make_target_series_lines(many(1025, 64));
    REQUIRE(lines.size() == 1025);
    for (const auto& line : lines) {
        CHECK(line["bytes"].size() == 32);
        CHECK(line["bytes"][0] == 6);
        CHECK(line["slice_s"] == 2e-6);
        CHECK(line["single_ns"][31] == 4);
    }
    const auto odd = make_target_series_lines(many(2048, 33));  // two neighbors are one, the last stays alone
    CHECK(odd[0]["bytes"].size() == 17);
    CHECK(odd[0]["bytes"][15] == 6);
    CHECK(odd[0]["bytes"][16] == 3);
    const auto table = make_target_line(many(2048, 64));
    CHECK(table["rows"].size() == 2048);
    CHECK(table["rows"][0][2] == 192);
}

TEST_CASE("target_totals_survive_packing_and_joining") {
    TargetTotals first;
    first.slice_ns = 50;
    first.opened_files = 3;
    first.known_layouts = 2;
    first.statistics_by_target["A"][0].slices = {{1, 2, 3, 4}};
    first.statistics_by_target["A"][1].slices = {{5, 6, 7, 8}, {9, 10, 11, 12}};
    first.statistics_by_target["A"][1].operations_by_latency_bucket = {{4, 40}, {7, 70}};
    first.statistics_by_target["A"][1].longest_ns = 7;
    const TargetTotals back = TargetTotals::unpack(first.pack());
    CHECK(back.pack() == first.pack());
    CHECK(back.slice_ns == 50);
    CHECK(back.opened_files == 3);
    CHECK(back.known_layouts == 2);
    CHECK(back.statistics_by_target.at("A")[1].operations_by_latency_bucket.at(7) == 70);
    CHECK(back.statistics_by_target.at("A")[1].slices.at(1).single_ns == 11);
    TargetTotals other = first;
    other.slice_ns = 40;
    other.statistics_by_target["A"][0].slices.resize(3, {100, 0, 0, 0});
    other.statistics_by_target["A"][1].longest_ns = 6;
    other.merge(back);
    CHECK(other.slice_ns == 50);
    CHECK(other.opened_files == 6);
    CHECK(other.known_layouts == 4);
    CHECK(other.sum_bytes(0) == 202);
    CHECK(other.sum_bytes(1) == 28);
    CHECK(other.statistics_by_target.at("A")[0].slices.size() == 3);
    CHECK(other.statistics_by_target.at("A")[1].operations_by_latency_bucket.at(7) == 140);
    CHECK(other.statistics_by_target.at("A")[1].longest_ns == 7);
    CHECK(other.statistics_by_target.at("A")[1].sum_slices().split_ops == 40);
}
