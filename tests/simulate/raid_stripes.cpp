// SPDX-License-Identifier: Apache-2.0
// Requests to drives with parity: whole and partial stripes, and requests that wait for the same drives.
#include "direct_calls.hpp"
#include "small_site.hpp"

#include <doctest/doctest.h>
#include <map>
#include <vector>

namespace sonde::simulate {
namespace {

/// Completion time of each of several concurrent direct reads, by offset.
std::map<std::uint64_t, Time> reads_at_once(const SystemModel& site, const std::vector<std::uint64_t>& offsets,
                                            std::uint64_t length) {
    CompletionTimes completions;
    Machine machine(site, {1, 0}, completions);
    ModelOperation operation = direct(ModelCallKind::read, 0, length);
    operation.stream = machine.begin_stream(0);
    operation.file = machine.get_file("f");
    machine.resize_file(operation.file, 64 * mib);
    for (const std::uint64_t offset : offsets) {
        operation.offset = operation.tag = offset;
        machine.submit(0, operation);
    }
    while (completions.times.size() < offsets.size()) {
        REQUIRE(machine.handle_next_event());
    }
    return completions.times;
}

TEST_CASE("partial-stripe write takes twice as long as an aligned write") {
    const Time aligned = one_call(raid_site(272e6), direct(ModelCallKind::write, 0, 2 * mib));
    CHECK(aligned == transfer_time(2 * mib, 272e6));
    // Eight drives read and write a segment each. Parity of both stripes is read and written: 4 segments over 9 drives.
    const Time shifted = one_call(raid_site(272e6), direct(ModelCallKind::write, 256U << 10U, 2 * mib));
    const double ratio = static_cast<double>(shifted) / static_cast<double>(aligned);
    CHECK(ratio == doctest::Approx(2 + 4.0 / 9).epsilon(0.001));
    SUBCASE("but not where there is no parity") {
        SystemModel mirror = raid_site(272e6);
        mirror.media[0].parity_drives = 0;
        CHECK(one_call(mirror, direct(ModelCallKind::write, 256U << 10U, 2 * mib)) == aligned);
    }
    SUBCASE("and not when it reads") {
        CHECK(one_call(raid_site(272e6), direct(ModelCallKind::read, 256U << 10U, 2 * mib), 4 * mib) == aligned);
    }
}

TEST_CASE("requests wait only for requests on the same drives") {
    constexpr std::uint64_t kib = 1024, segment = 256 * kib;
    const Time one_read = transfer_time(64 * kib, 272e6 / 8);
    const auto different_drives = reads_at_once(raid_site(272e6), {0, segment, 7 * segment}, 64 * kib);
    for (const auto& [offset, at] : different_drives) {
        CHECK(at == one_read);
    }
    const auto same = reads_at_once(raid_site(272e6), {0, 64 * kib, 9 * segment}, 64 * kib);
    CHECK(same.at(0) == one_read);
    CHECK(same.at(64 * kib) == 2 * one_read);
    CHECK(same.at(9 * segment) == 3 * one_read);
    // Whole stripes need all of them, and so does what comes behind.
    const Time stripe = transfer_time(2 * mib, 272e6);
    CHECK(reads_at_once(raid_site(272e6), {0, 2 * mib}, 2 * mib).at(2 * mib) == 2 * stripe);
    SUBCASE("and each moves its own arm") {
        SystemModel site = raid_site(272e6);
        site.media[0].seek = seconds_to_time(8e-3);
        const auto completion_times = reads_at_once(site, {4 * segment, segment, 7 * segment}, 64 * kib);
        for (const auto& [offset, at] : completion_times) {
            CHECK(at == seconds_to_time(8e-3) + one_read);
        }
    }
}

TEST_CASE("long read is sent stripe by stripe while drives read on") {
    SystemModel site = raid_site(272e6);
    site.targets[0].paths = {{add_link(site, "channel", 272e6)}};
    const Time stripe = transfer_time(2 * mib, 272e6);
    CHECK(one_call(site, direct(ModelCallKind::read, 0, 2 * mib), 64 * mib) == 2 * stripe);
    CHECK(to_seconds(one_call(site, direct(ModelCallKind::read, 0, 8 * mib), 64 * mib)) ==
          doctest::Approx(to_seconds(5 * stripe)).epsilon(1e-6));
    // A fast channel waits for the drives.
    site.links[0].rate = {272e7, 272e7};
    CHECK(to_seconds(one_call(site, direct(ModelCallKind::read, 0, 8 * mib), 64 * mib)) ==
          doctest::Approx(to_seconds(4 * stripe)).epsilon(1e-6));
}

TEST_CASE("run of partial-stripe writes takes the sum of their times") {
    const auto run = [](std::uint64_t offset) {
        ClosedLoop loop;
        Machine machine(raid_site(272e6), {1, 0}, loop);
        loop.machine = &machine;
        ModelOperation operation = direct(ModelCallKind::write, offset, 2 * mib);
        operation.stream = machine.begin_stream(0);
        operation.file = machine.get_file("f");
        loop.next_operations = {operation};
        loop.remaining_calls = {31};
        loop.start();
        return static_cast<double>(loop.last);
    };
    CHECK(run(256U << 10U) / run(0) == doctest::Approx(2 + 4.0 / 9).epsilon(0.001));
}

TEST_CASE("aligned writes take the same time at every stripe") {
    for (const std::uint64_t stripes : {1U, 3U, 17U}) {
        CHECK(one_call(raid_site(272e6), direct(ModelCallKind::write, stripes * 2 * mib, 2 * mib)) ==
              transfer_time(2 * mib, 272e6));
    }
}

TEST_CASE("long call is split after the largest transfer of a driver") {
    CompletionTimes completions;
    Machine machine(raid_site(272e6), {1, 0}, completions);
    ModelOperation operation = direct(ModelCallKind::write, 10 * mib, 40 * mib);
    operation.stream = machine.begin_stream(0);
    operation.file = machine.get_file("f");
    machine.submit(0, operation);
    while (completions.times.empty()) {
        REQUIRE(machine.handle_next_event());
    }
    CHECK(machine.get_monitoring_data().targets[0].write_bytes.samples == 3);
    CHECK(machine.get_monitoring_data().targets[0].write_bytes.minimum == 8 * mib);
    CHECK(machine.get_monitoring_data().targets[0].write_bytes.maximum == 16 * mib);
}

}  // namespace
}  // namespace sonde::simulate
