// SPDX-License-Identifier: Apache-2.0
// Transfers whose time can be computed by hand, and invariants of all transfers.
#include "direct_calls.hpp"
#include "kernel/random.hpp"
#include "small_site.hpp"

#include <doctest/doctest.h>

namespace sonde::simulate {
namespace {

TEST_CASE("striped transfer takes the time of its share on one target") {
    for (const std::size_t targets : {1U, 2U, 4U, 8U}) {
        const Time time = one_call(small_site(1, targets, 100e6), direct(ModelCallKind::write, 0, 8 * mib));
        CHECK(to_seconds(time) == doctest::Approx(8.0 * mib / 100e6 / static_cast<double>(targets)).epsilon(1e-6));
    }
}

TEST_CASE("parallel reads complete as their bytes arrive") {
    CompletionTimes completions;
    Machine machine(small_site(1, 1, 100e6), {1, 0}, completions);
    ModelOperation operation = direct(ModelCallKind::read, 0, mib);
    operation.direct = false;
    operation.stream = machine.begin_stream(0);
    operation.file = machine.get_file("f");
    machine.resize_file(operation.file, 3 * mib);
    for (const std::uint64_t number : {0U, 2U, 1U}) {
        operation.offset = number * mib;
        operation.tag = number;
        machine.submit(0, operation);
    }
    while (completions.times.size() < 3) {
        REQUIRE(machine.handle_next_event());
    }
    CHECK(completions.times.at(0) == transfer_time(mib, 100e6));
    CHECK(completions.times.at(2) == 2 * transfer_time(mib, 100e6));
    CHECK(completions.times.at(1) == 3 * transfer_time(mib, 100e6));
}

TEST_CASE("call takes its cpu time and the round-trip latency") {
    SystemModel site = small_site(1, 1, 100e6);
    site.clients[0].call_cost = 5'000;
    site.clients[0].link = add_link(site, "adapter", 0, 20'000);
    const Time time = one_call(site, direct(ModelCallKind::write, 0, mib));
    CHECK(time == 5'000 + 2 * 20'000 + transfer_time(mib, 100e6));
    CHECK(one_call(site, direct(ModelCallKind::read, 0, mib), mib) == time);
}

TEST_CASE("slowest link of a path sets the rate") {
    SystemModel site = small_site(1, 1, 1e9);
    site.clients[0].link = add_link(site, "adapter", 50e6);
    ServerDescription server;
    server.id = "oss";
    server.link = add_link(site, "server", 200e6);
    site.servers.push_back(server);
    site.targets[0].server = 1;
    const Time time = one_call(site, direct(ModelCallKind::write, 0, mib));
    CHECK(time == transfer_time(mib, 50e6) + transfer_time(mib, 1e9));
}

/// Rate of `streams` writers in a closed loop, bytes/s.
double rate_of(SystemModel site, std::size_t streams, ModelCallKind call, std::uint64_t transfer = mib) {
    ClosedLoop loop;
    const std::size_t clients = site.clients.size();
    Machine machine(std::move(site), {1, 0}, loop);
    loop.machine = &machine;
    constexpr std::uint64_t calls = 200;
    for (std::size_t i = 0; i < streams; ++i) {
        ModelOperation operation = direct(call, 0, transfer);
        operation.stream = machine.begin_stream(static_cast<std::uint32_t>(i % clients));
        operation.file = machine.get_file("f" + std::to_string(i));
        machine.resize_file(operation.file, calls * transfer);
        loop.next_operations.push_back(operation);
        loop.remaining_calls.push_back(calls);
    }
    loop.start();
    return static_cast<double>(streams * calls * transfer) / to_seconds(loop.last);
}

TEST_CASE("many streams get the rate of the bottleneck") {
    SystemModel site = small_site(4, 8, 100e6);
    CHECK(rate_of(site, 16, ModelCallKind::write) == doctest::Approx(800e6).epsilon(0.01));
    for (ClientDescription& client : site.clients) {
        client.link = add_link(site, client.id, 150e6);
    }
    CHECK(rate_of(site, 16, ModelCallKind::write) == doctest::Approx(600e6).epsilon(0.01));
    CHECK(rate_of(site, 16, ModelCallKind::read) == doctest::Approx(600e6).epsilon(0.01));
}

/// Writers and readers at once over one link, bytes/s of both together.
double duplex_rate(bool half) {
    SystemModel site = small_site(2, 8, 1e9);
    const int link = add_link(site, "shared", 100e6);
    site.links[static_cast<std::size_t>(link)].half_duplex = half;
    site.clients[0].link = site.clients[1].link = link;
    ClosedLoop loop;
    Machine machine(site, {1, 0}, loop);
    loop.machine = &machine;
    for (std::uint32_t i = 0; i < 8; ++i) {
        ModelOperation operation = direct(i % 2 == 0 ? ModelCallKind::write : ModelCallKind::read, 0, mib);
        operation.stream = machine.begin_stream(i % 2);
        operation.file = machine.get_file("f" + std::to_string(i));
        machine.resize_file(operation.file, 200 * mib);
        loop.next_operations.push_back(operation);
        loop.remaining_calls.push_back(200);
    }
    loop.start();
    return 8.0 * 200 * mib / to_seconds(loop.last);
}

TEST_CASE("full-duplex link carries both directions at its rate") {
    CHECK(duplex_rate(false) == doctest::Approx(200e6).epsilon(0.02));
    CHECK(duplex_rate(true) == doctest::Approx(100e6).epsilon(0.02));
}

TEST_CASE("only writes that extend a file pass the log") {
    SystemModel site = small_site(1, 1, 100e6);
    site.file_system.is_local = true;
    site.log = add_link(site, "fs/log", 50e6);
    // Stripes of 1 MiB one behind the other: the last one is stored when it has passed the log.
    const Time last = transfer_time(mib, 100e6), moved = 8 * last, logged = transfer_time(8 * mib, 50e6) + last;
    for (const bool buffered : {false, true}) {
        CompletionTimes completions;
        Machine machine(site, {1, 0}, completions);
        ModelOperation operation = direct(ModelCallKind::write, 0, 8 * mib);
        operation.sync = buffered;
        operation.direct = !buffered;
        operation.stream = machine.begin_stream(0);
        const auto time_of_call = [&](std::uint64_t tag) {
            operation.tag = tag;
            const Time begin = machine.now();
            machine.submit(begin, operation);
            while (completions.times.count(tag) == 0) {
                REQUIRE(machine.handle_next_event());
            }
            return completions.times[tag] - begin;
        };
        operation.file = machine.get_file("new");
        CHECK(time_of_call(1) == logged);
        CHECK(time_of_call(2) == moved);  // its blocks are there
        operation.offset = 4 * mib;
        CHECK(time_of_call(3) == transfer_time(4 * mib, 50e6) + last);  // half of it is new
        operation.offset = 0;
        operation.file = machine.get_file("made");
        machine.allocate_blocks(operation.file, 8 * mib);
        CHECK(time_of_call(4) == moved);
        machine.resize_file(operation.file, 0);
        CHECK(time_of_call(5) == logged);
    }
}

TEST_CASE("target distributes its requests over all paths") {
    SystemModel site = small_site(1, 2, 1e9);
    site.file_system.is_local = true;
    const int left_link = add_link(site, "left", 100e6), right_link = add_link(site, "right", 100e6);
    for (TargetDescription& target : site.targets) {
        target.paths = {{left_link}, {right_link}};
    }
    site.targets.pop_back();  // one target, or every second stripe of two: both ways carry half
    for (const bool two : {false, true}) {
        SystemModel variant = site;
        if (two) {
            variant.targets.push_back(variant.targets[0]);
            variant.targets[1].paths = {};
        }
        CompletionTimes completions;
        Machine machine(variant, {1, 0}, completions);
        ModelOperation operation = direct(ModelCallKind::write, 0, 32 * mib);
        operation.stream = machine.begin_stream(0);
        operation.file = machine.get_file("f");
        machine.submit(0, operation);
        while (completions.times.empty()) {
            REQUIRE(machine.handle_next_event());
        }
        for (const Machine::Flow& flow : machine.flows()) {
            if (flow.part == "left" || flow.part == "right") {
                CHECK(flow.written == (two ? 8 : 16) * mib);
            }
        }
    }
}

TEST_CASE("requested bytes pass every part once on random machines") {
    Random chance(11);
    for (int round = 0; round < 60; ++round) {
        SystemModel site =
            small_site(1 + chance.integer_below(4), 1 + chance.integer_below(9), 20e6 + 200e6 * chance.uniform());
        site.file_system.stripe_size = (1 + chance.integer_below(64)) * 65536;
        site.file_system.stripe_count = static_cast<std::int64_t>(chance.integer_below(site.targets.size() + 1));
        const int server_link = add_link(site, "server", 1e9 * chance.uniform() + 1e7, 3'000);
        ServerDescription server;
        server.id = "oss";
        server.link = server_link;
        site.servers.push_back(server);
        for (TargetDescription& target : site.targets) {
            target.server = 1;
            target.queue_depth = static_cast<std::uint32_t>(chance.integer_below(5));
            target.request_cost = static_cast<Time>(chance.integer_below(200'000));
            target.noise = 0.3 * chance.uniform();
        }
        for (ClientDescription& client : site.clients) {
            client.page_cache_bytes = chance.integer_below(2) * (64 * mib);
            client.dirty_limit_bytes = chance.integer_below(3) * (8 * mib);
            client.dirty_bytes_per_target = chance.integer_below(3) * (2 * mib);
            client.rpc_size = (1 + chance.integer_below(16)) * 65536;
        }
        CompletionTimes completions;
        const std::size_t clients = site.clients.size();
        Machine machine(site, {static_cast<std::uint64_t>(round), 0}, completions);
        std::uint64_t written = 0, tag = 0;
        for (std::uint32_t i = 0; i < 24; ++i) {
            ModelOperation operation =
                direct(ModelCallKind::write, chance.integer_below(1000) * 4096, 1 + chance.integer_below(6 * mib));
            operation.direct = chance.integer_below(2) == 0;
            operation.stream = machine.begin_stream(static_cast<std::uint32_t>(i % clients));
            operation.file = machine.get_file("f" + std::to_string(chance.integer_below(5)));
            operation.tag = ++tag;
            written += operation.length;
            machine.submit(static_cast<Time>(chance.integer_below(1'000'000)), operation);
            ModelOperation sync = operation;
            sync.kind = ModelCallKind::fsync;
            sync.tag = ++tag;
            machine.submit(machine.now() + 60'000'000'000, sync);
        }
        while (completions.times.size() < tag) {
            REQUIRE(machine.handle_next_event());
        }
        std::uint64_t at_targets = 0, at_server = 0;
        for (const Machine::Flow& flow : machine.flows()) {
            at_targets += flow.part[0] == 't' ? flow.written : 0;
            at_server += flow.part == "server" ? flow.written : 0;
        }
        REQUIRE(at_targets == written);
        REQUIRE(at_server == written);
    }
}

TEST_CASE("buffered stream slows from copy to target rate at limit") {
    SystemModel site = small_site(1, 1, 100e6);
    site.clients[0].copy_rate = 1e9;
    site.clients[0].dirty_limit_bytes = 64 * mib;
    ClosedLoop loop;
    Machine machine(site, {1, 0}, loop);
    loop.machine = &machine;
    ModelOperation operation = direct(ModelCallKind::write, 0, mib);
    operation.direct = false;
    operation.stream = machine.begin_stream(0);
    operation.file = machine.get_file("f");
    loop.next_operations = {operation};
    loop.remaining_calls = {32};
    loop.start();
    CHECK(to_seconds(loop.last) == doctest::Approx(32.0 * mib / 1e9).epsilon(0.01));
    loop.next_operations[0].offset = 32 * mib;
    loop.remaining_calls = {1000};
    const Time before = loop.last;
    loop.next_operations[0].tag = 0;
    machine.submit(before, loop.next_operations[0]);
    while (loop.is_active()) {
        machine.handle_next_event();
    }
    CHECK(1000.0 * mib / to_seconds(loop.last - before) == doctest::Approx(100e6).epsilon(0.05));
}

TEST_CASE("read-ahead hides latency from sequential reads only") {
    SystemModel site = small_site(1, 4, 100e6);
    site.clients[0].link = add_link(site, "adapter", 0, 5'000'000);
    site.clients[0].read_ahead_bytes = 32 * mib;
    site.clients[0].page_cache_bytes = 1024 * mib;
    const auto rate = [&site](bool sequential) {
        ClosedLoop loop;
        Machine machine(site, {1, 0}, loop);
        loop.machine = &machine;
        ModelOperation operation = direct(ModelCallKind::read, 0, 65536);
        operation.direct = false;
        operation.stream = machine.begin_stream(0);
        operation.file = machine.get_file("f");
        machine.resize_file(operation.file, 512 * mib);
        Random chance(1);
        std::uint64_t bytes = 0;
        for (std::uint64_t i = 0; i < 400; ++i) {
            operation.offset = sequential ? i * 65536 : chance.integer_below(8192) * 65536;
            operation.tag = 0;
            loop.next_operations = {operation};
            loop.remaining_calls = {1};
            machine.submit(loop.last, operation);
            while (loop.is_active()) {
                machine.handle_next_event();
            }
            bytes += operation.length;
        }
        return static_cast<double>(bytes) / to_seconds(loop.last);
    };
    CHECK(rate(true) > 10 * rate(false));
}

TEST_CASE("equal seeds give equal times, different seeds do not") {
    SystemModel site = small_site(3, 5, 100e6);
    for (TargetDescription& target : site.targets) {
        target.noise = 0.2;
    }
    const auto last = [&site](std::uint64_t seed) {
        ClosedLoop loop;
        Machine machine(site, {seed, 0}, loop);
        loop.machine = &machine;
        for (std::uint32_t i = 0; i < 6; ++i) {
            ModelOperation operation = direct(ModelCallKind::write, 0, 3 * mib);
            operation.stream = machine.begin_stream(i % 3);
            operation.file = machine.get_file("f" + std::to_string(i));
            loop.next_operations.push_back(operation);
            loop.remaining_calls.push_back(100);
        }
        loop.start();
        return loop.last;
    };
    CHECK(last(1) == last(1));
    CHECK(last(1) != last(2));
}

}  // namespace
}  // namespace sonde::simulate
