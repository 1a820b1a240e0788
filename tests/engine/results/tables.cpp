// SPDX-License-Identifier: Apache-2.0
// The tables of the record hold what was counted, row by row.
#include "results/tables.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

using nlohmann::ordered_json;
using sonde::results::NodeClock;
using sonde::results::PhaseFacts;
using sonde::results::TaskRow;
using sonde::results::Totals;
using sonde::tests::second;

namespace {

/// A task that moved 600 bytes, with a number of its own in each column.
TaskRow row(int task, int node, std::int64_t start_ns, std::int64_t end_ns) {
    TaskRow row_with_times = sonde::tests::row_of(task, node, start_ns, end_ns, 600);
    row_with_times.operations = 6;
    row_with_times.open_ns = second / 4;
    row_with_times.transfer_ns = second / 2;
    row_with_times.fsync_ns = second / 8;
    row_with_times.close_ns = second / 16;
    row_with_times.user_ns = second;
    row_with_times.system_ns = 2 * second;
    row_with_times.stonewall_bytes = 500;
    row_with_times.stonewall_operations = 5;
    return row_with_times;
}

}  // namespace

TEST_CASE("task_rows_are_ordered_with_individual_rates") {
    Totals totals;
    totals.rows = {row(1, 1, second, 4 * second), row(0, 0, second, second)};
    PhaseFacts facts;
    const auto lines = make_task_lines(totals, facts);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0]["first_task"] == 0);
    CHECK(lines[0]["columns"].size() == 14);
    CHECK(lines[0]["rows"][0] == ordered_json{0, 0, 0, 600, 6, 1.0, 1.0, 0.25, 0.5, 0.125, 0.0625, 1.0, 2.0, nullptr});
    CHECK(lines[0]["rows"][1] == ordered_json{1, 1, 0, 600, 6, 1.0, 4.0, 0.25, 0.5, 0.125, 0.0625, 1.0, 2.0, 200.0});
    facts.stonewall_ns = 1;
    const auto walled = make_task_lines(totals, facts);
    CHECK(walled[0]["columns"][14] == "stonewall_bytes");
    CHECK(walled[0]["columns"][15] == "stonewall_ops");
    CHECK(walled[0]["rows"][1][14] == 500);
    CHECK(walled[0]["rows"][1][15] == 5);
}

TEST_CASE("task_line_has_at_most_1024_rows") {
    Totals totals;
    for (int task = 0; task < 1025; ++task) {
        totals.rows.push_back(row(task, 0, 0, second));
    }
    const auto lines = make_task_lines(totals, {});
    REQUIRE(lines.size() == 2);
    CHECK(lines[0]["rows"].size() == 1024);
    CHECK(lines[1]["first_task"] == 1024);
    CHECK(lines[1]["rows"].size() == 1);
    CHECK(make_task_lines(Totals{}, PhaseFacts{}).empty());
}

TEST_CASE("node_row_sums_its_tasks") {
    Totals totals;
    totals.rows = {row(0, 0, 2 * second, 5 * second), row(1, 0, second, 4 * second), row(2, 1, 0, 0)};
    PhaseFacts facts;
    facts.hosts = {"alpha"};
    const ordered_json line = make_node_line(totals, facts);
    CHECK(line["columns"].size() == 9);
    REQUIRE(line["rows"].size() == 2);
    CHECK(line["rows"][0] == ordered_json{0, "alpha", 2, 1200, 12, 4.0, 300.0, 2.0, 4.0});
    CHECK(line["rows"][1] == ordered_json{1, "", 1, 600, 6, 0.0, nullptr, 1.0, 2.0});
}

TEST_CASE("node_row_has_clock_or_null") {
    Totals totals;
    totals.rows = {row(0, 0, 0, second), row(1, 1, 0, second)};
    PhaseFacts facts;
    NodeClock clock;
    clock.node = 1;
    clock.offset_ns = 10;
    clock.error_ns = 20;
    clock.drift_ns = 30;
    clock.drift_error_ns = 40;
    facts.clocks = {clock};
    const ordered_json line = make_node_line(totals, facts);
    CHECK(line["columns"].size() == 13);
    CHECK(line["rows"][0][9].is_null());
    CHECK(line["rows"][0][12].is_null());
    CHECK(line["rows"][1][9] == 10);
    CHECK(line["rows"][1][10] == 20);
    CHECK(line["rows"][1][11] == 30);
    CHECK(line["rows"][1][12] == 40);
}

TEST_CASE("histogram_line_has_values_sums_and_overflow") {
    Totals totals;
    sonde::meters::Histogram& writes = totals.latency_histograms[sonde::meters::kind_write];
    writes.add(5);
    writes.add(5);
    writes.add(100);
    writes.add(1ULL << 50U);
    const auto lines = make_histogram_lines(totals);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] == ordered_json{{"kind", "write"},
                                   {"count", 4},
                                   {"min_ns", 5},
                                   {"max_ns", 1ULL << 50U},
                                   {"sum_ns", (1ULL << 50U) + 110},
                                   {"overflow", 1},
                                   {"buckets", {{5, 6, 2}, {100, 101, 1}}}});
    CHECK(make_histogram_lines(Totals{}).empty());
}

TEST_CASE("quantile_of_empty_is_null_and_of_a_single_value_its_bucket") {
    // Below 128 each value has a bucket; 200 and 201 share theirs.
    const auto bucket_of_200 = static_cast<std::uint32_t>(sonde::meters::Histogram::get_bucket_index(200));
    const std::vector<sonde::results::AmountHistogram> slices{
        {}, {{100, 1}}, {{10, 1}, {20, 1}, {30, 1}, {40, 1}, {50, 1}}, {{bucket_of_200, 3}}};
    const ordered_json out = sonde::results::histograms_to_json(slices, second / 2);
    CHECK(out["min"] == ordered_json{nullptr, 200.0, 20.0, 401.0});
    CHECK(out["p25"] == ordered_json{nullptr, 200.0, 40.0, 401.0});
    CHECK(out["p50"] == ordered_json{nullptr, 200.0, 60.0, 401.0});
    CHECK(out["p75"] == ordered_json{nullptr, 200.0, 80.0, 401.0});
    CHECK(out["max"] == ordered_json{nullptr, 200.0, 100.0, 401.0});
}

TEST_CASE("name_counters_add_and_longest_verify_wins") {
    Totals first;
    first.file_operations = 1;
    first.listed_entries = 2;
    first.listed_directories = 3;
    first.examined_entries = 4;
    first.matched_entries = 5;
    first.longest_verify_ns = 7;
    first.short_operations = 8;
    Totals other = first;
    other.longest_verify_ns = 6;
    first.merge(other);
    CHECK(first.file_operations == 2);
    CHECK(first.listed_entries == 4);
    CHECK(first.listed_directories == 6);
    CHECK(first.examined_entries == 8);
    CHECK(first.matched_entries == 10);
    CHECK(first.longest_verify_ns == 7);
    CHECK(first.short_operations == 16);
}
