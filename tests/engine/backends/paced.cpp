// SPDX-License-Identifier: Apache-2.0
// The storage of known speed keeps its schedule: every completion against arithmetic by hand.
#include "backends/backend.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <memory>
#include <vector>

using sonde::backends::Channel;
using sonde::backends::ChannelSetup;
using sonde::backends::Completion;
using sonde::backends::IoRequest;
using sonde::plan::Io;
using sonde::plan::Paced;

namespace {

constexpr std::int64_t second = 1'000'000'000;

/// A channel of task `task` with its settings.
struct PacedStorage {
    explicit PacedStorage(Paced settings, int task = 0, int depth = 1) : paced(std::move(settings)) {
        io.queue_depth = depth;
        ChannelSetup setup;
        setup.io = &io;
        setup.paced = &paced;
        setup.task = task;
        channel = sonde::backends::find_backend("paced")->make_channel(setup);
        channel->begin_timed_part();
    }
    /// Time after one more operation of `megabytes`.
    std::int64_t move(double megabytes) const {
        IoRequest operation;
        operation.length = static_cast<std::uint32_t>(std::llround(megabytes * 1e6));
        CHECK(channel->transfer(operation) == operation.length);
        return channel->virtual_time_ns();
    }

    Paced paced;
    Io io;
    std::unique_ptr<Channel> channel;
};

Paced schedule_of(std::vector<Paced::RateStep> steps, bool ramp = false) {
    Paced paced;
    paced.schedule = std::move(steps);
    paced.ramp = ramp;
    return paced;
}

}  // namespace

TEST_CASE("a steady rate moves bytes in bytes over rate") {
    const PacedStorage storage(schedule_of({{0, 100e6}}));
    CHECK(storage.move(10) == second / 10);
    CHECK(storage.move(90) == second);
    CHECK(storage.move(1) == second + second / 100);
}

TEST_CASE("latency is added to each operation of one after the other") {
    Paced paced = schedule_of({{0, 100e6}});
    paced.latency = 5'000'000;
    const PacedStorage storage(paced);
    CHECK(storage.move(1) == 15'000'000);
    CHECK(storage.move(1) == 30'000'000);
    Paced only = schedule_of({});
    only.latency = 250;
    const PacedStorage instant(only);
    CHECK(instant.move(4) == 250);
    CHECK(instant.move(4) == 500);
}

TEST_CASE("a step in the rate takes effect inside an operation") {
    // 100 MB/s for 1 s, then 50, then 200 from the third second on.
    const PacedStorage storage(schedule_of({{0, 100e6}, {second, 50e6}, {3 * second, 200e6}}));
    CHECK(storage.move(50) == second / 2);
    CHECK(storage.move(100) == 2 * second);  // 50 MB at 100, 50 MB at 50
    CHECK(storage.move(250) == 4 * second);  // 50 MB at 50, 200 MB at 200
}

TEST_CASE("one operation may span several steps") {
    const PacedStorage storage(schedule_of({{0, 100e6}, {second, 50e6}, {3 * second, 200e6}}));
    CHECK(storage.move(400) == 4 * second);
}

TEST_CASE("a ramp moves the area below it") {
    // From 0+ to 100 MB/s in 10 s is 50 MB/s in the mean; here 20 → 100 MB/s: 600 MB, then flat.
    const PacedStorage storage(schedule_of({{0, 20e6}, {10 * second, 100e6}}, true));
    CHECK(storage.move(600) == 10 * second);
    CHECK(storage.move(100) == 11 * second);
    const PacedStorage down(schedule_of({{0, 100e6}, {10 * second, 20e6}}, true));
    // 100 x - 4 x² = 400 MB: x = 5 s.
    CHECK(down.move(400) == 5 * second);
    CHECK(down.move(200) == 10 * second);
    CHECK(down.move(20) == 11 * second);
}

TEST_CASE("ramp ends at the same time in small and large operations") {
    const PacedStorage small(schedule_of({{0, 20e6}, {2 * second, 100e6}, {4 * second, 10e6}}, true));
    std::int64_t now = 0;
    for (int i = 0; i < 2300; ++i) {
        now = small.move(0.1);
    }
    const PacedStorage large(schedule_of({{0, 20e6}, {2 * second, 100e6}, {4 * second, 10e6}}, true));
    CHECK(std::llabs(now - large.move(230)) <= 1);
    CHECK(now == 4 * second);  // 120 + 110 MB
}

TEST_CASE("slow task is slower by its factor, further tasks are not") {
    Paced paced = schedule_of({{0, 100e6}, {second, 200e6}});
    paced.slow_tasks[3] = 10;
    const PacedStorage slow(paced, 3);
    CHECK(slow.move(10) == second);
    CHECK(slow.move(20) == 2 * second);
    const PacedStorage fast(paced, 2);
    CHECK(fast.move(100) == second);
}

TEST_CASE("queued latencies overlap while bytes are sequential") {
    Paced paced = schedule_of({{0, 100e6}});
    paced.latency = 50'000'000;
    const PacedStorage storage(paced, 0, 4);
    IoRequest operation;
    operation.length = 1'000'000;
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
        operation.slot = slot;
        CHECK(storage.channel->submit(operation));
    }
    CHECK_FALSE(storage.channel->submit(operation));
    std::vector<Completion> done(4);
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
        REQUIRE(storage.channel->reap(done) == 1);
        CHECK(done[0].slot == slot);
        CHECK(storage.channel->virtual_time_ns() == 50'000'000 + (slot + 1) * 10'000'000);
    }
    CHECK(storage.channel->reap(done) == 0);
}

TEST_CASE("failures begin after the configured number of operations") {
    Paced paced = schedule_of({{0, 100e6}});
    paced.fail_after = 2;
    paced.fail_errno = 28;
    const PacedStorage storage(paced);
    storage.move(1);
    storage.move(1);
    IoRequest operation;
    operation.length = 1000;
    CHECK(storage.channel->transfer(operation) == -28);
    CHECK(storage.channel->transfer(operation) == -28);
}

TEST_CASE("many operations accumulate no rounding") {
    const PacedStorage storage(schedule_of({{0, 300e6}}));  // a third of a nanosecond is left over in each
    std::int64_t now = 0;
    for (int i = 0; i < 300'000; ++i) {
        now = storage.move(0.001);
    }
    CHECK(std::llabs(now - second) <= 1);
}
