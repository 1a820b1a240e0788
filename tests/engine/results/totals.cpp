// SPDX-License-Identifier: Apache-2.0
// Totals of nodes join in any grouping to the same result, and travel without loss.
#include "streams.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

using sonde::meters::kind_read;
using sonde::meters::kind_write;
using sonde::results::Totals;
using sonde::tests::mb;
using sonde::tests::Stream;
using sonde::tests::totals_of;

namespace {

/// Totals of node `node` with two streams of random work, all with the same slice width.
Totals random_node(std::mt19937_64& random, int node) {
    const auto pick = [&random](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    Stream a(2 * node);
    Stream b(2 * node + 1, static_cast<int>(pick(0, 1)));
    for (Stream* stream : {&a, &b}) {
        const std::int64_t start = pick(0, 500);
        const std::int64_t end = pick(600, 6000);
        stream->open(start / 2, start)
            .write(start, end, static_cast<int>(pick(1, 90)), static_cast<std::uint64_t>(pick(1, 9'999'999)))
            .close(end, end + pick(0, 50))
            .at_wall(static_cast<std::uint64_t>(pick(0, 1000)), 3, pick(0, 1) == 1);
        auto& meter = stream->meter();
        meter.planned_bytes = static_cast<std::uint64_t>(pick(0, 1 << 30));
        meter.planned_operations = static_cast<std::uint64_t>(pick(0, 1 << 20));
        for (std::uint64_t* count : {&meter.file_operations, &meter.listed_entries, &meter.listed_directories,
                                     &meter.examined_entries, &meter.matched_entries}) {
            *count = static_cast<std::uint64_t>(pick(0, 1 << 20));
        }
        meter.failed_operations = static_cast<std::uint64_t>(pick(0, 3));
        meter.short_operations = static_cast<std::uint64_t>(pick(0, 3));
        meter.checked_bytes = static_cast<std::uint64_t>(pick(0, 1 << 30));
        meter.mismatch_count = static_cast<std::uint64_t>(pick(0, 3));
        meter.verify_ns = pick(0, 1 << 30);
        meter.user_ns = static_cast<std::uint64_t>(pick(0, 1 << 30));
        meter.system_ns = static_cast<std::uint64_t>(pick(0, 1 << 30));
        meter.next_operation = static_cast<std::uint64_t>(pick(0, 1 << 20));
        meter.histogram(kind_read).add(static_cast<std::uint64_t>(pick(100, 1LL << 43)));
    }
    return totals_of({&a, &b}, node);
}

Totals joined(Totals sum, const Totals& right) {
    sum.merge(right);
    return sum;
}

}  // namespace

TEST_CASE("packed_total_is_identical_after_unpack") {
    std::mt19937_64 random(2);
    for (int round = 0; round < 30; ++round) {
        const Totals totals = random_node(random, round);
        const std::string once = totals.pack();
        CHECK(Totals::unpack(once).pack() == once);
    }
    CHECK(Totals::unpack(Totals{}.pack()).pack() == Totals{}.pack());
}

TEST_CASE("every_counter_survives_packing") {
    std::mt19937_64 random(3);
    const Totals totals = random_node(random, 4);
    const Totals back = Totals::unpack(totals.pack());
    CHECK(back.planned_bytes == totals.planned_bytes);
    CHECK(back.bytes == totals.bytes);
    CHECK(back.operations == totals.operations);
    CHECK(back.short_operations == totals.short_operations);
    CHECK(back.file_operations == totals.file_operations);
    CHECK(back.listed_entries == totals.listed_entries);
    CHECK(back.listed_directories == totals.listed_directories);
    CHECK(back.examined_entries == totals.examined_entries);
    CHECK(back.matched_entries == totals.matched_entries);
    CHECK(back.failed_operations == totals.failed_operations);
    CHECK(back.checked_bytes == totals.checked_bytes);
    CHECK(back.mismatch_count == totals.mismatch_count);
    CHECK(back.stonewalled_streams == totals.stonewalled_streams);
    CHECK(back.longest_verify_ns == totals.longest_verify_ns);
    CHECK(back.stonewall_bytes == totals.stonewall_bytes);
    CHECK(back.slice_ns == totals.slice_ns);
    CHECK(back.latency_histograms[kind_write].sum_ns == totals.latency_histograms[kind_write].sum_ns);
    CHECK(back.latency_histograms[kind_write].min_ns == totals.latency_histograms[kind_write].min_ns);
    CHECK(back.latency_histograms[kind_read].overflow == totals.latency_histograms[kind_read].overflow);
    CHECK(back.latency_histograms[kind_write].quantile(0.5) == totals.latency_histograms[kind_write].quantile(0.5));
    REQUIRE(back.rows.size() == totals.rows.size());
    CHECK(back.rows[1].task == totals.rows[1].task);
    CHECK(back.rows[1].transfer_end_ns == totals.rows[1].transfer_end_ns);
    CHECK(back.rows[1].next_operation == totals.rows[1].next_operation);
    CHECK(back.sums_of_streams[0].bytes == totals.sums_of_streams[0].bytes);
    REQUIRE(back.sums_of_streams[0].slices.size() == totals.sums_of_streams[0].slices.size());
    for (std::size_t i = 0; i < back.sums_of_streams[0].slices.size(); ++i) {
        CHECK(back.sums_of_streams[0].slices[i].bytes == totals.sums_of_streams[0].slices[i].bytes);
        CHECK(back.sums_of_streams[0].slices[i].active_streams == totals.sums_of_streams[0].slices[i].active_streams);
        CHECK(back.sums_of_streams[0].slices[i].stream_bytes == totals.sums_of_streams[0].slices[i].stream_bytes);
    }
}

TEST_CASE("totals_join_is_associative") {
    std::mt19937_64 random(5);
    for (int round = 0; round < 30; ++round) {
        const Totals a = random_node(random, 0);
        const Totals b = random_node(random, 1);
        const Totals c = random_node(random, 2);
        CHECK(joined(joined(a, b), c).pack() == joined(a, joined(b, c)).pack());
    }
}

TEST_CASE("empty_total_is_neutral") {
    std::mt19937_64 random(6);
    const Totals some = random_node(random, 0);
    CHECK(joined(some, Totals{}).pack() == some.pack());
    CHECK(joined(Totals{}, some).pack() == some.pack());
}

TEST_CASE("intervals_span_first_start_to_last_end") {
    Stream a(0);
    a.open(10, 20).write(20, 500, 1, mb);
    Stream b(1);
    b.open(0, 5).write(30, 700, 1, mb);
    const Totals all = joined(totals_of({&a}, 0), totals_of({&b}, 1));
    CHECK(all.parts_of_work[sonde::meters::part_open].first_start_ns == 0);
    CHECK(all.parts_of_work[sonde::meters::part_open].last_end_ns == 20 * sonde::tests::ms);
    CHECK(all.parts_of_work[sonde::meters::part_open].sum_ns == 15 * sonde::tests::ms);
    CHECK(all.parts_of_work[sonde::meters::part_transfer].first_start_ns == 20 * sonde::tests::ms);
    CHECK(all.parts_of_work[sonde::meters::part_transfer].last_end_ns == 700 * sonde::tests::ms);
    CHECK(all.parts_of_work[sonde::meters::part_close].first_start_ns == -1);
}

TEST_CASE("task_row_is_in_root_time_with_part_times") {
    Stream one(3, 1);
    one.open(100, 150).write(200, 500, 3, mb).close(500, 560).at_wall(7, 8, true);
    auto& meter = one.meter();
    meter.bytes[kind_read] = 5;
    meter.operations[kind_read] = 2;
    meter.file_operations = 4;
    meter.user_ns = 11;
    meter.system_ns = 12;
    meter.next_operation = 13;
    meter.parts_of_work[sonde::meters::part_fsync].add(520 * sonde::tests::ms, 530 * sonde::tests::ms);
    const auto added = [&](std::int64_t offset_ms) {
        Totals totals;
        totals.add(meter, 6, sonde::tests::max_slices, 100 * sonde::tests::ms, 0, offset_ms * sonde::tests::ms);
        return totals;
    };
    const Totals totals = added(1000);
    REQUIRE(totals.rows.size() == 1);
    const sonde::results::TaskRow& row = totals.rows[0];
    CHECK(row.task == 3);
    CHECK(row.stream == 1);
    CHECK(row.node == 6);
    CHECK(row.bytes == 3 * mb + 5);
    CHECK(row.operations == 9);
    CHECK(row.start_ns == 1100 * sonde::tests::ms);
    CHECK(row.end_ns == 1560 * sonde::tests::ms);
    CHECK(row.open_ns == 50 * sonde::tests::ms);
    CHECK(row.transfer_ns == 300 * sonde::tests::ms);
    CHECK(row.fsync_ns == 10 * sonde::tests::ms);
    CHECK(row.close_ns == 60 * sonde::tests::ms);
    CHECK(row.transfer_start_ns == 1200 * sonde::tests::ms);
    CHECK(row.transfer_end_ns == 1500 * sonde::tests::ms);
    CHECK(row.user_ns == 11);
    CHECK(row.system_ns == 12);
    CHECK(row.next_operation == 13);
    CHECK(row.stonewall_bytes == 7);
    CHECK(row.stonewall_operations == 8);
    CHECK(totals.stonewalled_streams == 1);
    CHECK(totals.sums_of_streams[1].bytes == row.bytes);
    CHECK(totals.sums_of_streams[0].slices.empty());
    // A clock so far off that the task would have begun before the phase: no time is negative.
    const Totals early = added(-300);
    CHECK(early.rows[0].start_ns == 0);
    CHECK(early.rows[0].end_ns == 260 * sonde::tests::ms);
    CHECK(early.rows[0].transfer_start_ns == 0);
    CHECK(early.rows[0].transfer_end_ns == 200 * sonde::tests::ms);
    CHECK(added(-9000).rows[0].end_ns == 0);
    CHECK(added(-9000).rows[0].transfer_end_ns == 0);
}

TEST_CASE("stream_is_active_in_touched_slices") {
    Stream exact(0);
    exact.write(100, 300, 2, mb);
    Stream inside(1);
    inside.write(150, 350, 2, mb);
    const Totals totals = totals_of({&exact, &inside});
    const auto& slices = totals.sums_of_streams[0].slices;
    REQUIRE(slices.size() == 4);
    const std::vector<int> active{0, 2, 2, 1};
    const std::vector<std::size_t> full{0, 1, 2, 0};
    for (std::size_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        CHECK(slices[i].active_streams == active[i]);
        std::uint32_t counted = 0;
        for (const auto& [bucket, count] : slices[i].stream_bytes) {
            counted += count;
        }
        CHECK(counted == full[i]);
    }
}

TEST_CASE("all_slices_are_sums_of_streams") {
    Stream writer(0, 0);
    writer.write(0, 300, 3, mb);
    Stream reader(0, 1);
    reader.write(0, 200, 4, mb);
    const auto all = sonde::results::sum_slices_of_streams(totals_of({&writer, &reader}));
    REQUIRE(all.size() == 3);
    CHECK(all[0].bytes == 3 * mb);
    CHECK(all[0].operations == 3);
    CHECK(all[0].active_streams == 2);
    CHECK(all[0].stream_bytes.size() == 2);
    CHECK(all[2].bytes == mb);
    CHECK(all[2].active_streams == 1);
}

TEST_CASE("slices_of_different_width_are_aligned") {
    Stream quick(0);
    quick.write(0, 1000, 10, mb);
    Stream slow(1);
    slow.write(0, 40'000, 200, mb);  // 128 slices of 0.1 s: doubles twice
    CHECK(quick.doublings() == 0);
    CHECK(slow.doublings() == 2);
    const Totals totals = totals_of({&quick, &slow});
    CHECK(totals.slice_ns == 400 * sonde::tests::ms);
    std::uint64_t sum = 0;
    for (const auto& slice : totals.sums_of_streams[0].slices) {
        sum += slice.bytes;
    }
    CHECK(sum == 210 * mb);
    CHECK(totals.sums_of_streams[0].slices.size() == 100);
    CHECK(totals.sums_of_streams[0].slices[0].bytes == 6 * mb);  // 4 of the quick one, 2 of the slow one
    CHECK(totals.sums_of_streams[0].slices[0].active_streams == 2);
    CHECK(totals.sums_of_streams[0].slices[2].active_streams == 2);
    CHECK(totals.sums_of_streams[0].slices[2].stream_bytes.size() ==
          1);  // the quick one ends inside it: it does not fill the slice
    CHECK(totals.sums_of_streams[0].slices[3].active_streams == 1);
}

TEST_CASE("hanging_stream_is_active_without_bytes") {
    Stream stuck(0);
    stuck.write(0, 100, 1, mb).write(3000, 3100, 1, mb);
    const Totals totals = totals_of({&stuck});
    CHECK(totals.sums_of_streams[0].slices.size() == 31);
    CHECK(totals.sums_of_streams[0].slices[10].bytes == 0);
    CHECK(totals.sums_of_streams[0].slices[10].active_streams == 1);
    CHECK(totals.sums_of_streams[0].slices[10].stream_bytes.at(0) == 1);
}

TEST_CASE("series_line_has_all_members") {
    Stream a(0);
    a.write(0, 1000, 100, mb);
    Stream b(1);
    b.write(0, 2000, 100, mb);
    const auto line = sonde::results::make_series_line(totals_of({&a, &b}));
    CHECK(line.at("slice_s") == doctest::Approx(0.1));
    CHECK(line.at("bytes").size() == 20);
    std::uint64_t sum = 0;
    for (const auto& bytes : line.at("bytes")) {
        sum += bytes.get<std::uint64_t>();
    }
    CHECK(sum == 200 * mb);
    CHECK(line.at("active").at(5) == 2);
    CHECK(line.at("active").at(15) == 1);
    CHECK(line.at("task_rate").at("max").at(5).get<double>() == doctest::Approx(100e6).epsilon(0.01));
    CHECK(line.at("task_rate").at("min").at(5).get<double>() == doctest::Approx(50e6).epsilon(0.01));
    CHECK(line.at("task_rate").at("p50").at(15).get<double>() == doctest::Approx(50e6).epsilon(0.01));
}
