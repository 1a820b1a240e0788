// SPDX-License-Identifier: Apache-2.0
// Every named rate against figures worked out by hand; the first example is the one in docs/concepts/rates.
#include "rows.hpp"
#include "streams.hpp"

#include <doctest/doctest.h>

using sonde::results::compute_rates;
using sonde::results::PhaseFacts;
using sonde::results::RateValue;
using sonde::results::Totals;
using sonde::tests::mb;
using sonde::tests::row_of;
using sonde::tests::second;
using sonde::tests::Stream;
using sonde::tests::totals_of;

namespace {

double per_second(const RateValue& rate) {
    return static_cast<double>(rate.bytes) / rate.seconds;
}

/// The example of docs/concepts/rates: one task is done after 5.2 s, the other after 10.4 s; the deadline is at 6 s.
struct Example {
    Stream a{0}, b{1};
    PhaseFacts facts;
    Totals totals;
    Example() {
        a.open(0, 100).write(100, 5100, 10, 100 * mb).close(5100, 5200).at_wall(1000 * mb, 10, false);
        b.open(0, 100).write(100, 10'100, 10, 100 * mb).close(10'100, 10'400).at_wall(590 * mb, 5, true);
        facts.stonewall_ns = 6 * second;
        facts.stopped_by = "stonewall";
        totals = totals_of({&a, &b});
    }
};

}  // namespace

TEST_CASE("rates_of_hand_computed_example") {
    const Example example;
    const auto rates = compute_rates(example.totals, example.facts);
    const auto check = [&](const char* name, double bytes, double seconds, double result) {
        CAPTURE(name);
        REQUIRE(rates.contains(name));
        CHECK(static_cast<double>(rates.at(name).bytes) == doctest::Approx(bytes * 1e6).epsilon(1e-3));
        CHECK(rates.at(name).seconds == doctest::Approx(seconds).epsilon(1e-9));
        CHECK(per_second(rates.at(name)) == doctest::Approx(result * 1e6).epsilon(1e-3));
    };
    check("total", 2000, 10.4, 192.3077);
    check("transfer", 2000, 10.0, 200);
    check("stonewall", 1590, 6.0, 265);
    check("steady", 1500, 5.0, 300);
    check("first_done", 1500, 5.1, 294.1176);
    check("task_sum", 1000.0 / 5.2 + 1000.0 / 10.4, 1.0, 288.4615);
    CHECK(rates.at("total").operations == 20);
    CHECK(rates.at("stonewall").operations == 15);
}

TEST_CASE("open_and_close_count_in_total_only") {
    Stream only(0);
    only.open(0, 1000).write(1000, 2000, 10, mb).close(2000, 4000);
    const auto rates = compute_rates(totals_of({&only}), {});
    CHECK(rates.at("total").seconds == doctest::Approx(4));
    CHECK(rates.at("transfer").seconds == doctest::Approx(1));
    CHECK(per_second(rates.at("task_sum")) == doctest::Approx(2.5e6));
    CHECK_FALSE(rates.contains("stonewall"));
}

TEST_CASE("steady_window_is_full_slices_with_all_tasks") {
    Stream early(0);
    early.write(0, 2000, 200, mb);
    Stream late(1);
    late.write(450, 2730, 228, mb);
    const auto rates = compute_rates(totals_of({&early, &late}), {});
    // [0.45, 2.0] s cut to slices of 0.1 s: [0.5, 2.0]; 1 MB in 10 ms each.
    CHECK(rates.at("steady").seconds == doctest::Approx(1.5));
    CHECK(rates.at("steady").bytes == 300 * mb);
    CHECK(rates.at("steady").operations == 300);
}

TEST_CASE("window_below_three_slices_has_no_steady_rate") {
    Stream early(0);
    early.write(0, 1000, 10, mb);
    Stream late(1);
    late.write(710, 2000, 10, mb);
    CHECK_FALSE(compute_rates(totals_of({&early, &late}), {}).contains("steady"));
    Stream later(1);
    later.write(1500, 2000, 10, mb);
    const auto rates = compute_rates(totals_of({&early, &later}), {});
    CHECK_FALSE(rates.contains("steady"));
    CHECK(rates.contains("first_done"));
}

TEST_CASE("first_done_counts_until_first_finished_task") {
    Stream fast(0);
    fast.write(0, 3050, 61, mb);  // 20 MB/s
    Stream slow(1);
    slow.write(0, 6100, 61, mb);  // 10 MB/s
    const auto rates = compute_rates(totals_of({&fast, &slow}), {});
    CHECK(rates.at("first_done").seconds == doctest::Approx(3.05));
    CHECK(static_cast<double>(rates.at("first_done").bytes) == doctest::Approx(91.5e6).epsilon(0.003));
}

TEST_CASE("stonewall_after_end_uses_real_duration") {
    Stream only(0);
    only.write(0, 2000, 10, mb).at_wall(10 * mb, 10, false);
    PhaseFacts facts;
    facts.stonewall_ns = 60'000'000'000;
    const auto rates = compute_rates(totals_of({&only}), facts);
    CHECK(rates.at("stonewall").seconds == doctest::Approx(2));
    CHECK(per_second(rates.at("stonewall")) == per_second(rates.at("transfer")));
}

TEST_CASE("no_bytes_or_zero_duration_give_no_rates") {
    CHECK(compute_rates(Totals{}, {}).empty());
    Stream instant(0);
    instant.write(0, 0, 1, mb);
    const auto rates = compute_rates(totals_of({&instant}), {});
    CHECK_FALSE(rates.contains("total"));
    CHECK_FALSE(rates.contains("transfer"));
}

TEST_CASE("phase_end_rates_are_quotients_of_its_members") {
    const Example example;
    const auto line = sonde::results::make_phase_end_line(example.totals, example.facts);
    for (const auto& [name, rate] : line.at("rates").items()) {
        CAPTURE(name);
        CHECK(rate.at("bytes_per_s").get<double>() ==
              doctest::Approx(rate.at("bytes").get<double>() / rate.at("seconds").get<double>()));
        CHECK(rate.at("ops_per_s").get<double>() ==
              doctest::Approx(rate.at("ops").get<double>() / rate.at("seconds").get<double>()));
    }
    CHECK(line.at("wearout_ratio").get<double>() == doctest::Approx(192.3077 / 265).epsilon(1e-4));
    CHECK(line.at("seconds").at("elapsed") == doctest::Approx(10.4));
    CHECK(line.at("seconds").at("open") == doctest::Approx(0.1));
    CHECK(line.at("seconds").at("close") == doctest::Approx(5.3));  // first start to last end: they overlap
    CHECK(line.at("task_seconds").at("close") == doctest::Approx(0.4));
    CHECK(line.at("task_seconds").at("transfer") == doctest::Approx(15));
    CHECK(line.at("imbalance").at("max_over_mean") == doctest::Approx(10.4 / 7.8));
    CHECK(line.at("imbalance").at("tail_share") == doctest::Approx(5.2 / 10.4));
    CHECK(line.at("imbalance").at("slowest").at(0).at("task") == 1);
    CHECK_FALSE(line.at("bytes").contains("planned"));  // nothing was planned: absent, not zero
    CHECK_FALSE(line.contains("verify"));
    CHECK_FALSE(line.contains("streams"));
}

TEST_CASE("streams_are_rated_during_overlap") {
    Stream writer(0, 0);
    writer.write(0, 4000, 40, mb);
    Stream reader(0, 1);
    reader.write(1000, 6000, 100, mb);
    const auto line = sonde::results::make_phase_end_line(totals_of({&writer, &reader}), {});
    REQUIRE(line.at("streams").size() == 2);
    for (const auto& stream : line.at("streams")) {
        CHECK(stream.at("overlap_s") == doctest::Approx(3));
    }
    CHECK(line.at("streams").at(0).at("bytes") == 40 * mb);
    CHECK(line.at("streams").at(0).at("overlap_bytes") == 30 * mb);
    CHECK(line.at("streams").at(1).at("overlap_bytes") == 60 * mb);
    CHECK(line.at("streams").at(1).at("bytes_per_s") == doctest::Approx(20e6));
}

TEST_CASE("phase_end_line_has_all_counters") {
    Totals totals;
    totals.bytes = {300, 700};
    totals.operations = {3, 7};
    totals.file_operations = 10;
    totals.short_operations = 2;
    totals.failed_operations = 1;
    totals.listed_entries = 5;
    totals.planned_bytes = 2000;
    totals.planned_operations = 40;
    totals.checked_bytes = 600;
    totals.mismatch_count = 4;
    totals.longest_verify_ns = 250'000'000;
    totals.parts_of_work[sonde::meters::part_transfer].add(500'000'000, 2'500'000'000);
    totals.parts_of_work[sonde::meters::part_fsync].add(2'500'000'000, 3'500'000'000);
    totals.rows.resize(2);
    for (auto& row : totals.rows) {
        row.user_ns = 500'000'000;
        row.system_ns = 250'000'000;
    }
    auto& writes = totals.latency_histograms[sonde::meters::kind_write];
    for (std::uint64_t ns = 1; ns <= 100; ++ns) {
        writes.add(ns);
    }
    PhaseFacts facts;
    facts.stopped_by = "volume";
    facts.residency = 0;
    const auto line = sonde::results::make_phase_end_line(totals, facts);
    using nlohmann::ordered_json;
    CHECK(line.at("stopped_by") == "volume");
    CHECK(line.at("bytes") == ordered_json{{"transferred", 1000}, {"read", 300}, {"written", 700}, {"planned", 2000}});
    CHECK(line.at("ops") ==
          ordered_json{{"done", 20}, {"read", 3}, {"written", 7}, {"short", 2}, {"failed", 1}, {"planned", 40}});
    CHECK(line.at("entries") == 5);
    CHECK(line.at("verify") == ordered_json{{"checked_bytes", 600}, {"mismatches", 4}});
    CHECK(line.at("seconds") == ordered_json{{"elapsed", 3.0}, {"transfer", 2.0}, {"fsync", 1.0}, {"verify", 0.25}});
    CHECK(line.at("task_seconds") == ordered_json{{"transfer", 2.0}, {"fsync", 1.0}});
    CHECK(line.at("rates").at("total").at("bytes_per_s") == doctest::Approx(1000.0 / 3));
    CHECK(line.at("rates").at("total").at("ops_per_s") == doctest::Approx(20.0 / 3));
    CHECK(line.at("rates").at("transfer").at("ops") == 20);
    CHECK(line.at("latency") == ordered_json{{"write",
                                              {{"count", 100},
                                               {"min_ns", 1},
                                               {"mean_ns", 50.5},
                                               {"p50_ns", 50},
                                               {"p90_ns", 90},
                                               {"p95_ns", 95},
                                               {"p99_ns", 99},
                                               {"p999_ns", 100},
                                               {"max_ns", 100}}}});
    CHECK(
        line.at("cpu") ==
        ordered_json{{"user_s", 1.0}, {"system_s", 0.5}, {"bytes_per_system_s", 2000.0}, {"bytes_per_user_s", 1000.0}});
    CHECK(line.at("residency") == 0);
    CHECK_FALSE(line.contains("wearout_ratio"));
    const auto nothing = sonde::results::make_phase_end_line(Totals{}, {});
    CHECK(nothing.at("cpu") == ordered_json{{"user_s", 0.0}, {"system_s", 0.0}});
    CHECK(nothing.at("seconds") == ordered_json{{"elapsed", 0.0}});
    CHECK(nothing.at("latency") == ordered_json::object());
    CHECK(nothing.at("rates") == ordered_json::object());
    for (const char* absent : {"entries", "residency", "verify", "streams"}) {
        CHECK_FALSE(nothing.contains(absent));
    }
}

TEST_CASE("five_slowest_tasks_are_reported_with_host") {
    Totals totals;
    for (int task = 0; task < 7; ++task) {
        const std::int64_t end = task == 3 ? second : 3 * second;
        totals.rows.push_back(row_of(task, task % 2, second, end, static_cast<std::uint64_t>(70 - 10 * task)));
    }
    totals.parts_of_work[sonde::meters::part_transfer].add(second, 3 * second);
    PhaseFacts facts;
    facts.hosts = {"alpha"};
    const auto imbalance = sonde::results::make_phase_end_line(totals, facts).at("imbalance");
    const auto& slowest = imbalance.at("slowest");
    REQUIRE(slowest.size() == 5);
    using nlohmann::ordered_json;
    // Task 3 took no time: it has no rate.
    CHECK(slowest.at(0) ==
          ordered_json{{"task", 3}, {"node", 1}, {"host", ""}, {"bytes_per_s", 0.0}, {"seconds", 0.0}});
    CHECK(slowest.at(1) ==
          ordered_json{{"task", 6}, {"node", 0}, {"host", "alpha"}, {"bytes_per_s", 5.0}, {"seconds", 2.0}});
    CHECK(slowest.at(4).at("task") == 2);
    CHECK(imbalance.at("max_over_mean") == doctest::Approx(7.0 / 6));
    CHECK(imbalance.at("tail_share") == 0.0);
}

TEST_CASE("tail_follows_end_of_first_half_of_tasks") {
    const auto tail = [](std::initializer_list<std::int64_t> ends_s) {
        Totals totals;
        for (const std::int64_t end : ends_s) {
            totals.rows.push_back(row_of(0, 0, 0, end * second, 0));
            totals.parts_of_work[sonde::meters::part_transfer].add(0, end * second);
        }
        return sonde::results::make_phase_end_line(totals, {}).at("imbalance").at("tail_share").get<double>();
    };
    CHECK(tail({8, 2, 4}) == doctest::Approx(0.5));
    CHECK(tail({8, 2, 4, 6}) == doctest::Approx(0.5));
    CHECK(tail({10}) == 0);
}

TEST_CASE("streams_without_overlap_have_no_rate") {
    Stream writer(0, 0);
    writer.write(0, 1000, 10, mb);
    Stream reader(0, 1);
    reader.write(1000, 2000, 10, mb);
    const auto line = sonde::results::make_phase_end_line(totals_of({&writer, &reader}), {});
    REQUIRE(line.at("streams").size() == 2);
    CHECK(line.at("streams").at(1) == nlohmann::ordered_json{{"bytes", 10 * mb}});
}

TEST_CASE("stream_overlap_is_latest_start_to_earliest_end") {
    Stream first(0, 0);
    first.write(0, 4000, 40, mb);
    Stream other(1, 0);
    other.write(500, 5000, 45, mb);
    Stream reader(0, 1);
    reader.write(0, 6000, 60, mb);
    const auto line = sonde::results::make_phase_end_line(totals_of({&first, &other, &reader}), {});
    CHECK(line.at("streams").at(0).at("overlap_s") == doctest::Approx(3.5));
    CHECK(line.at("streams").at(0).at("overlap_bytes") == 70 * mb);
    CHECK(line.at("streams").at(1).at("overlap_bytes") == 35 * mb);
}

TEST_CASE("wearout_ratio_compares_total_with_stonewall") {
    Stream only(0);
    only.write(0, 4000, 4, mb).at_wall(0, 0, true);
    PhaseFacts facts;
    facts.stonewall_ns = 2'000'000'000;
    CHECK_FALSE(sonde::results::make_phase_end_line(totals_of({&only}), facts).contains("wearout_ratio"));
    only.at_wall(3 * mb, 3, true);
    CHECK(sonde::results::make_phase_end_line(totals_of({&only}), facts).at("wearout_ratio") ==
          doctest::Approx(1.0 / 1.5));
}

TEST_CASE("node_name_is_host_or_number") {
    PhaseFacts facts;
    facts.hosts = {"alpha", ""};
    CHECK(facts.find_node_name(0) == "alpha");
    CHECK(facts.find_node_name(1) == "node 1");
    CHECK(facts.find_node_name(2) == "node 2");
}

TEST_CASE("three_full_slices_give_steady_rate") {
    Stream early(0);
    early.write(0, 1000, 100, mb);
    Stream late(1);
    late.write(700, 2000, 130, mb);
    const auto rates = compute_rates(totals_of({&early, &late}), {});
    REQUIRE(rates.contains("steady"));
    CHECK(rates.at("steady").seconds == doctest::Approx(0.3));
    CHECK(rates.at("steady").bytes == 60 * mb);
}
