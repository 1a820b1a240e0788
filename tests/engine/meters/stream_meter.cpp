// SPDX-License-Identifier: Apache-2.0
// The counts of a stream begin at 0 and share no memory with its neighbors.
#include "meters/stream_meter.hpp"

#include "meters/clock.hpp"

#include <doctest/doctest.h>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <memory>
#include <new>

using sonde::meters::Clock;
using sonde::meters::Histogram;
using sonde::meters::read_thread_cpu_time;
using sonde::meters::StreamMeter;
using sonde::meters::WorkInterval;

namespace {

/// A meter as the engine makes one: at a page, with its slices and histograms behind it.
struct MeterFixture {
    static constexpr int slice_count = 100;
    struct FreeMemory {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::size_t size = (StreamMeter::address_space_bytes(slice_count) + 4095) / 4096 * 4096;
    // Fresh memory of the kernel is zero, and histograms count on that.
    std::unique_ptr<void, FreeMemory> memory{std::memset(std::aligned_alloc(4096, size), 0, size)};
    StreamMeter& meter = *new (memory.get()) StreamMeter;
};

std::uint64_t nanoseconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

TEST_CASE("a meter begins with nothing counted") {
    const MeterFixture fixture;
    const StreamMeter& meter = fixture.meter;
    CHECK(meter.task == -1);
    CHECK(meter.finished_ns == -1);
    CHECK_FALSE(meter.deadline_passed);
    for (const std::uint64_t zero : {meter.bytes[0],
                                     meter.bytes[1],
                                     meter.operations[0],
                                     meter.operations[1],
                                     meter.file_operations,
                                     meter.listed_entries,
                                     meter.listed_directories,
                                     meter.examined_entries,
                                     meter.matched_entries,
                                     meter.planned_bytes,
                                     meter.planned_operations,
                                     meter.short_operations,
                                     meter.failed_operations,
                                     meter.checked_bytes,
                                     meter.mismatch_count,
                                     meter.stonewall_bytes,
                                     meter.stonewall_operations,
                                     meter.user_ns,
                                     meter.system_ns,
                                     meter.completed_files,
                                     meter.next_operation,
                                     meter.live_counters.bytes.load(),
                                     meter.live_counters.operations.load()}) {
        CHECK(zero == 0);
    }
    CHECK(std::size(meter.bytes) == 2);
    CHECK(std::size(meter.operations) == 2);
    CHECK(std::size(meter.parts_of_work) == 4);
    CHECK(meter.live_counters.active.load() == 0);
    CHECK(meter.duplex_stream == 0);
    CHECK(meter.verify_ns == 0);
    CHECK(meter.slices_used == 0);
    CHECK(meter.slices_doublings == 0);
    CHECK(meter.kinds_used == 0);
}

TEST_CASE("interval spans first start to last end with exact sum") {
    WorkInterval interval;
    CHECK(interval.first_start_ns == -1);
    CHECK(interval.last_end_ns == -1);
    CHECK(interval.sum_ns == 0);
    interval.add(50, 70);
    CHECK(interval.first_start_ns == 50);
    CHECK(interval.last_end_ns == 70);
    interval.add(60, 65);
    CHECK(interval.first_start_ns == 50);
    CHECK(interval.last_end_ns == 70);
    interval.add(0, 90);
    CHECK(interval.first_start_ns == 0);
    interval.add(10, 20);
    CHECK(interval.first_start_ns == 0);
    CHECK(interval.last_end_ns == 90);
    CHECK(interval.sum_ns == 20 + 5 + 90 + 10);
}

TEST_CASE("histograms and slices do not overlap in memory") {
    const MeterFixture fixture;
    StreamMeter& meter = fixture.meter;
    auto* base = reinterpret_cast<std::byte*>(&meter);
    for (unsigned kind = 0; kind < sonde::meters::kinds; ++kind) {
        CHECK(meter.find_histogram(kind) == nullptr);
        Histogram& histogram = meter.histogram(kind);
        histogram.add(100 + kind);
        CHECK(&meter.histogram(kind) == &histogram);
        CHECK(reinterpret_cast<std::byte*>(&histogram) == base + 4096 + kind * sizeof(Histogram));
        REQUIRE(meter.find_histogram(kind) == &histogram);
        CHECK(meter.find_histogram(kind)->count() == 1);
    }
    auto* slices = reinterpret_cast<std::byte*>(meter.slice_bytes());
    CHECK(slices == base + 4096 + sonde::meters::kinds * sizeof(Histogram));
    CHECK(meter.slice_operations(MeterFixture::slice_count) == meter.slice_bytes() + MeterFixture::slice_count);
    auto* end =
        reinterpret_cast<std::byte*>(meter.slice_operations(MeterFixture::slice_count) + MeterFixture::slice_count);
    CHECK(end <= base + StreamMeter::address_space_bytes(MeterFixture::slice_count));
}

TEST_CASE("meter memory is head, slice pages and used histograms") {
    const std::size_t histograms = sonde::meters::kinds * sizeof(Histogram);
    CHECK(StreamMeter::address_space_bytes(256) == 4096 + histograms + 4096);
    CHECK(StreamMeter::address_space_bytes(257) == 4096 + histograms + 8192);
    CHECK(StreamMeter::address_space_bytes(1) == 4096 + histograms + 4096);
    CHECK(StreamMeter::max_memory_bytes(256, 2) == 4096 + 2 * sizeof(Histogram) + 4096);
}

TEST_CASE("histogram of an earlier phase is cleared on first use") {
    const MeterFixture fixture;
    fixture.meter.histogram(0).add(5);
    fixture.meter.kinds_used = 0;
    CHECK(fixture.meter.find_histogram(0) == nullptr);
    CHECK(fixture.meter.histogram(0).count() == 0);
}

TEST_CASE("thread CPU time equals the kernel's count") {
    const std::uint64_t before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    const auto first = read_thread_cpu_time();
    volatile unsigned work = 0;
    while (nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before < 30'000'000) {
        for (int i = 0; i < 1000; ++i) {
            work = work + 1;
        }
    }
    const auto second = read_thread_cpu_time();
    const std::uint64_t spent = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before;
    const std::uint64_t counted = second.user_ns + second.system_ns - first.user_ns - first.system_ns;
    CHECK(counted <= spent + 20'000'000);  // a tick of the kernel, where it counts by ticks
    CHECK(counted + 20'000'000 >= spent);
    CHECK(second.user_ns >= first.user_ns);
}

TEST_CASE("clock reading lies between two system clock readings") {
    const auto before = static_cast<std::int64_t>(nanoseconds(CLOCK_MONOTONIC));
    const std::int64_t now = Clock::monotonic_ns();
    const Clock clock;
    const std::int64_t read = clock.now_ns();
    const auto after = static_cast<std::int64_t>(nanoseconds(CLOCK_MONOTONIC));
    CHECK(before <= now);
    CHECK(now <= read);
    CHECK(read <= after);
}

TEST_CASE("overflows of two histograms add up") {
    Histogram first;
    Histogram other;
    first.clear();
    other.clear();
    first.add(1ULL << 62U);
    other.add(1ULL << 62U);
    other.add(7);
    other.add(5);
    first.merge(other);
    CHECK(first.overflow == 2);
    CHECK(first.count() == 4);
    CHECK(first.min_ns == 5);
}
