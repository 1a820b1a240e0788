// SPDX-License-Identifier: Apache-2.0
// Counters of a target: slices that widen and keep sums, latencies, and the sums of streams on a board.
#include "named_targets.hpp"

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
using sonde::tests::add_target;
using sonde::tests::board_of;

namespace {

TargetCell row(const TargetMeter& meter, std::uint32_t index, std::uint32_t target = 0) {
    return meter.cell(1, index, target);
}

/// The place of a name on a board; null when it has none.
const TargetBoard::TargetSlot* find_target_slot(const TargetBoard& board, const std::string& name) {
    for (const TargetBoard::TargetSlot& target : board.targets) {
        if (target.state.load() == 2 && name == target.name.data()) {
            return &target;
        }
    }
    return nullptr;
}

}  // namespace

TEST_CASE("bytes spread over slices, operation counts at its end") {
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

TEST_CASE("widened slices keep their sums") {
    TargetMeter meter(0, 10);
    std::mt19937 random(3);
    std::vector<std::uint64_t> bytes;
    for (std::uint64_t i = 0; i < 300; ++i) {
        const std::string name = "OST" + std::to_string(i % (1 + i / 2));
        const std::uint32_t target = add_target(meter, name);
        bytes.resize(std::max<std::size_t>(bytes.size(), target + 1));
        const std::uint64_t moved_bytes = random() % 1000;
        bytes[target] += moved_bytes;
        meter.add_split(1, target, i * 37, i * 37 + random() % 90, moved_bytes, true);
    }
    REQUIRE(meter.names().size() > 100);
    CHECK(meter.rows() == 16);
    CHECK((std::uint64_t{10} << meter.doublings()) * meter.rows() >= 299 * 37);
    for (std::uint32_t target = 0; target < bytes.size(); ++target) {
        std::uint64_t sum = 0;
        for (std::uint32_t index = 0; index < meter.rows(); ++index) {
            sum += row(meter, index, target).bytes;
        }
        CHECK(sum == bytes[target]);
    }
}

TEST_CASE("doubling merges neighbor slices, the current slice remains") {
    TargetMeter meter(0, 10);
    const std::uint32_t target = add_target(meter, "A");
    for (std::uint64_t i = 0; i < 64; ++i) {
        meter.add_single(1, target, i * 10, i * 10 + 5, 5, i + 1);
    }
    CHECK(meter.doublings() == 0);
    meter.add_single(1, target, 640, 645, 5, 1000);
    CHECK(meter.doublings() == 1);
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(row(meter, i).bytes == 4 * i + 3);
        CHECK(row(meter, i).single_ops == 2);
        CHECK(row(meter, i).single_ns == 10);
    }
    CHECK(row(meter, 32).bytes == 1000);
    meter.add_single(1, target, 650, 660, 10, 2000);  // inside the slice that was just begun
    CHECK(row(meter, 32).bytes == 3000);
    meter.add_single(1, target, 660, 665, 5, 7);
    CHECK(row(meter, 33).bytes == 7);
    for (std::uint32_t i = 34; i < 64; ++i) {
        CHECK_FALSE(row(meter, i).is_used());
    }
}

TEST_CASE("slices have the requested width, at least 1 ns") {
    for (const std::uint64_t width : {0ULL, 1ULL}) {
        TargetMeter meter(100, width);
        const std::uint32_t target = add_target(meter, "A");
        meter.add_single(1, target, 101, 102, 1, 5);
        CHECK(row(meter, 0).bytes == 0);
        CHECK(row(meter, 1).bytes == 5);
    }
}

TEST_CASE("counts stay when targets are added") {
    TargetMeter meter(0, 10);
    const std::uint32_t first = add_target(meter, "A");
    meter.add_single(0, first, 0, 5, 40, 7);
    meter.add_single(0, first, 10, 15, 4000, 8);
    meter.add_split(1, first, 20, 25, 9, true);
    const std::uint32_t second = add_target(meter, "B");
    meter.add_single(0, second, 0, 5, 50, 1);
    const std::uint32_t third = add_target(meter, "C");
    CHECK(meter.latencies(0, TargetLatency::get_bucket_index(40), first) == 1);
    CHECK(meter.latencies(0, TargetLatency::get_bucket_index(4000), first) == 1);
    CHECK(meter.latencies(0, TargetLatency::get_bucket_index(50), second) == 1);
    CHECK(meter.longest_ns(0, first) == 4000);
    CHECK(meter.longest_ns(0, second) == 50);
    CHECK(meter.cell(0, 0, first).bytes == 7);
    CHECK(meter.cell(0, 1, first).bytes == 8);
    CHECK(meter.cell(0, 0, second).bytes == 1);
    CHECK(meter.cell(1, 2, first).split_ops == 1);
    std::uint64_t counted = 0;
    for (std::size_t bucket = 0; bucket < TargetLatency::buckets; ++bucket) {
        for (const unsigned kind : {0U, 1U}) {
            counted += meter.latencies(kind, bucket, first) + meter.latencies(kind, bucket, second);
            CHECK(meter.latencies(kind, bucket, third) == 0);
        }
    }
    CHECK(counted == 3);
}

TEST_CASE("meter has spare targets and slices within 64 KiB") {
    const auto meter_of = [](int targets) {
        auto meter = std::make_unique<TargetMeter>(0, 10);
        for (int i = 0; i < targets; ++i) {
            meter->find_or_add_target("OST" + std::to_string(i));
        }
        meter->allocate_counters();
        return meter;
    };
    CHECK(meter_of(1)->rows() == 64);
    CHECK(meter_of(32)->rows() == 64);
    CHECK(meter_of(33)->rows() == 32);
    CHECK(meter_of(65)->rows() == 16);
    CHECK(meter_of(2000)->rows() == 16);
    const auto meter = meter_of(24);
    meter->allocate_counters();  // nothing came: nothing changes
    CHECK(meter->rows() == 64);
    meter->find_or_add_target("one more");
    meter->allocate_counters();  // for 36
    CHECK(meter->rows() == 32);
}

TEST_CASE("early operation stays early after doublings") {
    TargetMeter meter(0, 10);
    for (int i = 0; i < 32; ++i) {
        meter.find_or_add_target("OST" + std::to_string(i));
    }
    meter.allocate_counters();
    meter.add_single(1, 0, 400, 410, 10, 1);  // slice 40 of 64
    meter.find_or_add_target("one more");
    meter.allocate_counters();
    REQUIRE(meter.doublings() == 1);
    CHECK(row(meter, 20).bytes == 1);
    meter.add_single(1, 0, 0, 10, 10, 100);
    CHECK(row(meter, 0).bytes == 100);
    meter.add_single(1, 0, 400, 420, 20, 1000);
    CHECK(row(meter, 20).bytes == 1001);
}

TEST_CASE("meter rejects targets beyond its capacity") {
    TargetMeter meter(0, 10);
    for (std::size_t i = 0; i < TargetMeter::max_targets; ++i) {
        CHECK(meter.find_or_add_target("OST" + std::to_string(i)) == i);
    }
    CHECK(meter.find_or_add_target("one more") == TargetMeter::no_target);
    CHECK(meter.find_or_add_target("OST7") == 7);
}

TEST_CASE("latency buckets contain the values between their ends") {
    for (std::uint64_t ns = 0; ns < 5000; ++ns) {
        const std::size_t bucket = TargetLatency::get_bucket_index(ns);
        REQUIRE(TargetLatency::bucket_begin(bucket) <= ns);
        REQUIRE(ns < TargetLatency::bucket_begin(bucket + 1));
    }
    CHECK(TargetLatency::get_bucket_index((1ULL << TargetLatency::max_value_bits) - 1) == TargetLatency::buckets - 1);
    CHECK(TargetLatency::get_bucket_index(~0ULL) == TargetLatency::buckets - 1);
}

TEST_CASE("board adds streams by target in the widest slices") {
    TargetMeter narrow(0, 100);
    TargetMeter wide(0, 100);
    const std::uint32_t a = add_target(narrow, "A");
    const std::uint32_t b = add_target(wide, "B");
    const std::uint32_t also_a = add_target(wide, "A");
    narrow.add_single(0, a, 110, 150, 40, 7);
    narrow.add_single(1, a, 420, 450, 30, 5);
    wide.add_single(0, also_a, 12'700, 12'800, 90, 11);  // slice 127 of 64: slices double once
    wide.add_split(1, b, 500, 600, 3, true);
    REQUIRE(wide.doublings() == 1);
    const auto board = board_of({{&narrow, 2, 1}, {&wide, 3, 2}, {nullptr, 4, 0}}, 1);
    CHECK(board->opened_files == 9);
    CHECK(board->known_layouts == 3);
    const TargetBoard::TargetSlot* const on_a = find_target_slot(*board, "A");
    REQUIRE(on_a != nullptr);
    CHECK(on_a->counts_by_kind[0].cells[0].bytes == 7);
    CHECK(on_a->counts_by_kind[0].cells[63].bytes == 11);
    CHECK(on_a->counts_by_kind[0].cells[63].single_ops == 1);
    CHECK(on_a->counts_by_kind[0].cells[63].single_ns == 90);
    CHECK(on_a->counts_by_kind[0].longest_ns == 90);
    CHECK(on_a->counts_by_kind[0].latency[TargetLatency::get_bucket_index(40)] == 1);
    CHECK(on_a->counts_by_kind[0].latency[TargetLatency::get_bucket_index(90)] == 1);
    CHECK(on_a->counts_by_kind[1].cells[2].bytes == 5);
    CHECK(on_a->counts_by_kind[1].longest_ns == 30);
    const TargetBoard::TargetSlot* const on_b = find_target_slot(*board, "B");
    REQUIRE(on_b != nullptr);
    CHECK(on_b->counts_by_kind[1].cells[2].bytes == 3);
    CHECK(on_b->counts_by_kind[1].cells[2].split_ops == 1);
    CHECK(on_b->counts_by_kind[1].cells[2].single_ops == 0);

    board->clear();
    CHECK(board->opened_files == 0);
    CHECK(board->known_layouts == 0);
    CHECK(find_target_slot(*board, "A") == nullptr);
    board->add({&narrow, 0, 0}, 0);
    REQUIRE(find_target_slot(*board, "A") != nullptr);
    CHECK(find_target_slot(*board, "A")->counts_by_kind[0].cells[1].bytes == 7);  // nothing of before
    CHECK(find_target_slot(*board, "A")->counts_by_kind[0].cells[63].bytes == 0);
    CHECK(find_target_slot(*board, "A")->counts_by_kind[0].longest_ns == 40);
}

TEST_CASE("slices widen to the requested width") {
    TargetMeter meter(0, 100);
    const std::uint32_t target = add_target(meter, "A");
    meter.add_single(0, target, 6300, 6400, 1, 9);
    const auto board = board_of({{&meter, 1, 1}}, 0);
    CHECK(find_target_slot(*board, "A")->counts_by_kind[0].cells[63].bytes == 9);
    board->add({&meter, 1, 1}, 3);
    CHECK(find_target_slot(*board, "A")->counts_by_kind[0].cells[7].bytes == 9);
}

TEST_CASE("board has the capacity of a meter and drops further targets") {
    TargetMeter first(0, 100);
    for (std::size_t i = 0; i < TargetMeter::max_targets; ++i) {
        first.find_or_add_target("OST" + std::to_string(i));
    }
    first.allocate_counters();
    for (std::uint32_t i = 0; i < TargetMeter::max_targets; ++i) {
        first.add_split(0, i, 0, 1, i + 1, true);
    }
    TargetMeter late(0, 100);
    late.add_split(0, add_target(late, "one more"), 0, 1, 5, true);
    const auto board = board_of({{&first, 1, 1}, {&late, 1, 1}, {&first, 1, 1}}, 0);
    CHECK(find_target_slot(*board, "one more") == nullptr);
    std::uint64_t sum = 0;
    for (const TargetBoard::TargetSlot& target : board->targets) {
        REQUIRE(target.state == 2);
        sum += target.counts_by_kind[0].cells[0].bytes;
    }
    CHECK(sum == 2048ULL * 2049);
}

TEST_CASE("target name is cut after 247 characters") {
    TargetMeter meter(0, 100);
    const std::string longest(247, 'x');
    meter.add_split(0, add_target(meter, longest), 0, 1, 1, true);
    meter.add_split(0, add_target(meter, longest + "y"), 0, 1, 2, true);
    const auto board = board_of({{&meter, 1, 1}}, 0);
    REQUIRE(find_target_slot(*board, longest) != nullptr);
    CHECK(find_target_slot(*board, longest)->counts_by_kind[0].cells[0].bytes == 3);
}
