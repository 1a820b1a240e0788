// SPDX-License-Identifier: Apache-2.0
// Bandwidth over time: no byte is lost or invented, whatever the operations and however often the width doubles.
#include "meters/slices.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

using sonde::meters::Slices;

namespace {

/// Slices with their memory.
struct Meter {
    Meter(std::uint32_t capacity, std::uint64_t start, std::uint64_t width)
        : bytes(capacity, 99), operations(capacity, 99) {
        slices.begin(bytes.data(), operations.data(), capacity, start, width);
    }
    std::uint64_t sum() const { return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}); }
    std::uint64_t count() const { return std::accumulate(operations.begin(), operations.end(), std::uint64_t{0}); }

    std::vector<std::uint64_t> bytes, operations;
    Slices slices;
};

}  // namespace

TEST_CASE("an operation inside one slice is counted there") {
    Meter meter(16, 1000, 100);
    CHECK(meter.slices.end_tick() == 1100);
    meter.slices.add_to_current(5);
    meter.slices.add(1210, 1220, 7);
    CHECK(meter.bytes[0] == 5);
    CHECK(meter.bytes[2] == 7);
    CHECK(meter.operations[2] == 1);
    CHECK(meter.slices.count_used_slices() == 3);
    CHECK(meter.slices.end_tick() == 1300);
    CHECK(meter.slices.start_tick() == 1200);
}

TEST_CASE("a slow operation is a plateau and is counted where it ends") {
    Meter meter(16, 0, 100);
    meter.slices.add(50, 450, 4000);  // 10 bytes a tick
    CHECK(meter.bytes[0] == 500);
    CHECK(meter.bytes[1] == 1000);
    CHECK(meter.bytes[2] == 1000);
    CHECK(meter.bytes[3] == 1000);
    CHECK(meter.bytes[4] == 500);
    CHECK(meter.operations[4] == 1);
    CHECK(meter.count() == 1);
    Meter later(16, 1000, 100);  // the same when time zero is not the clock's
    later.slices.add(1050, 1450, 4000);
    CHECK(later.bytes == meter.bytes);
}

TEST_CASE("an operation that ends with a slice belongs to it") {
    Meter meter(16, 0, 100);
    for (std::uint64_t i = 0; i < 10; ++i) {
        meter.slices.add(i * 100, (i + 1) * 100, 8);
    }
    CHECK(meter.slices.count_used_slices() == 10);
    for (std::size_t i = 0; i < 10; ++i) {
        CAPTURE(i);
        CHECK(meter.bytes[i] == 8);
        CHECK(meter.operations[i] == 1);
    }
}

TEST_CASE("an operation without duration keeps its bytes") {
    Meter meter(16, 0, 100);
    meter.slices.add(300, 300, 12);
    meter.slices.add(250, 200, 30);  // a clock that went back
    CHECK(meter.sum() == 42);
    CHECK(meter.count() == 2);
}

TEST_CASE("operation that ends before time zero is in the first slice") {
    Meter meter(16, 1000, 100);
    meter.slices.add(900, 950, 3);
    meter.slices.add(900, 1050, 4);
    CHECK(meter.bytes[0] == 7);
    CHECK(meter.operations[0] == 2);
}

TEST_CASE("full slices double their width and keep their sums") {
    Meter meter(4, 0, 10);
    for (std::uint64_t i = 0; i < 4; ++i) {
        meter.slices.add(i * 10, i * 10 + 5, i + 1);
    }
    CHECK(meter.slices.doublings() == 0);
    meter.slices.add(40, 45, 50);
    CHECK(meter.slices.doublings() == 1);
    CHECK(meter.bytes == std::vector<std::uint64_t>{3, 7, 50, 0});
    CHECK(meter.operations == std::vector<std::uint64_t>{2, 2, 1, 0});
    meter.slices.add(45, 165, 120);  // doubles twice more, and is spread at the last width
    CHECK(meter.slices.doublings() == 3);
    CHECK(meter.bytes == std::vector<std::uint64_t>{60 + 35, 80, 5, 0});
    CHECK(meter.slices.count_used_slices() == 3);
}

TEST_CASE("jump of many doublings preserves all counts") {
    Meter meter(16, 0, 1);
    meter.slices.add(0, 1, 10);
    meter.slices.add(1, 1'000'000'000'000ULL, 1'000'000);
    CHECK(meter.sum() == 1'000'010);
    CHECK(meter.slices.doublings() == 36);  // 16 * 2^36 is the first above 10^12
}

TEST_CASE("sum is exact under random operations and doublings") {
    std::mt19937_64 random(11);
    for (int round = 0; round < 300; ++round) {
        const std::uint32_t capacity = 2 * std::uniform_int_distribution<std::uint32_t>(1, 40)(random);
        const std::uint64_t width = std::uniform_int_distribution<std::uint64_t>(1, 1000)(random);
        const std::uint64_t start = std::uniform_int_distribution<std::uint64_t>(0, 1ULL << 50U)(random);
        Meter meter(capacity, start, width);
        std::uint64_t moved_bytes = 0;
        std::uint64_t now = start;
        for (int i = 0; i < 200; ++i) {
            const double spread = std::uniform_real_distribution<double>(0, 4)(random);
            const auto duration = static_cast<std::uint64_t>(std::pow(10.0, spread)) - 1;
            const std::uint64_t length = random() % (1ULL << 31U);
            const std::uint64_t end = now + duration;
            if (end < meter.slices.end_tick()) {
                meter.slices.add_to_current(length);
            } else {
                meter.slices.add(now, end, length);
            }
            moved_bytes += length;
            now = end;
            REQUIRE(now <= meter.slices.end_tick());
        }
        CAPTURE(round);
        REQUIRE(meter.sum() == moved_bytes);
        REQUIRE(meter.count() == 200);
        REQUIRE(meter.slices.count_used_slices() <= capacity);
        REQUIRE((now - start) <= (static_cast<std::uint64_t>(capacity) * width << meter.slices.doublings()));
    }
}

TEST_CASE("out-of-order overlapping operations keep their sum") {
    std::mt19937_64 random(5);
    Meter meter(8, 0, 10);
    std::uint64_t moved_bytes = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const std::uint64_t from = random() % 5000;
        const std::uint64_t length = random() % 100'000;
        meter.slices.add(from, from + random() % 500, length);
        moved_bytes += length;
    }
    CHECK(meter.sum() == moved_bytes);
    CHECK(meter.count() == 1000);
}

TEST_CASE("a constant rate is flat, whatever the length of an operation") {
    for (const std::uint64_t duration : {7ULL, 100ULL, 333ULL, 5000ULL}) {
        Meter meter(64, 0, 100);
        for (std::uint64_t now = 0; now + duration <= 6000; now += duration) {
            meter.slices.add(now, now + duration, duration * 1000);
        }
        const std::uint64_t full_slices = 6000 / duration * duration / 100;
        for (std::size_t i = 0; i < full_slices; ++i) {
            CAPTURE(duration);
            CAPTURE(i);
            CHECK(static_cast<double>(meter.bytes[i]) == doctest::Approx(100'000).epsilon(0.0001).scale(1));
        }
    }
}
