// SPDX-License-Identifier: Apache-2.0
// State that the streams of a client share: read-ahead in flight and cached names.
#include "small_site.hpp"

#include <doctest/doctest.h>

namespace sonde::simulate {
namespace {

TEST_CASE("streams of a client share its total of read-ahead") {
    // Each request takes 1 ms, of any number at once. With a total of one request eight tasks read ahead in turn, and
    // the others wait for each call; with less than one nobody reads ahead.
    SystemModel site = small_site(1, 1, 0);
    site.targets[0].request_cost = 1'000'000;
    site.clients[0].rpcs_in_flight = 1000;
    site.clients[0].read_ahead_bytes = 8 * mib;
    site.clients[0].page_cache_bytes = 4096 * mib;
    const auto seconds = [&site](std::uint64_t total, std::uint64_t streams) {
        site.clients[0].total_read_ahead_bytes = total;
        ClosedLoop loop;
        Machine machine(site, {1, 0}, loop);
        loop.machine = &machine;
        for (std::uint64_t i = 0; i < streams; ++i) {
            ModelOperation operation;
            operation.kind = ModelCallKind::read;
            operation.length = mib;
            operation.stream = machine.begin_stream(0);
            operation.file = machine.get_file("f" + std::to_string(i));
            machine.resize_file(operation.file, 64 * mib);
            loop.next_operations.push_back(operation);
            loop.remaining_calls.push_back(64);
        }
        loop.start();
        return to_seconds(loop.last);
    };
    CHECK(seconds(0, 8) == seconds(0, 1));
    CHECK(seconds(64 * mib, 8) == seconds(8 * mib, 1));
    CHECK(seconds(8 * mib, 1) < 0.3 * 64 * 0.001);
    CHECK(seconds(mib, 8) > 2 * seconds(64 * mib, 8));
    CHECK(seconds(mib, 8) <= 64 * 0.001);
    CHECK(seconds(mib / 2, 8) == doctest::Approx(64 * 0.001));
}

TEST_CASE("stat of a name that the client keeps is no request") {
    SystemModel site = small_site(2, 1, 0);
    site.clients[0].call_cost = 1'000;
    site.clients[0].cached_names = 2;
    ClosedLoop loop;
    Machine machine(site, {1, 0}, loop);
    loop.machine = &machine;
    const StreamId stream = machine.begin_stream(0);
    const auto stat = [&](const std::string& name) {
        ModelOperation operation;
        operation.kind = ModelCallKind::stat;
        operation.stream = stream;
        operation.file = machine.get_file(name);
        const Time before = loop.last;
        loop.next_operations = {operation};
        loop.remaining_calls = {1};
        machine.submit(before, operation);
        while (loop.is_active()) {
            machine.handle_next_event();
        }
        return loop.last - before;
    };
    constexpr Time request = 1'001'000, hit = 1'000;
    CHECK(stat("a") == request);
    CHECK(stat("a") == hit);
    CHECK(stat("b") == request);
    CHECK(stat("a") == hit);
    CHECK(stat("c") == request);  // b was used least recently
    CHECK(stat("a") == hit);
    CHECK(stat("b") == request);
    machine.remove_file("b");
    CHECK(stat("b") == request);
    CHECK(stat("b") == hit);
    machine.drop_client_caches(0);
    CHECK(stat("b") == request);
}

}  // namespace
}  // namespace sonde::simulate
