// SPDX-License-Identifier: Apache-2.0
// Faults of nodes, routers, paths and metadata servers: their effects on rates, counters and logs; and parse_fault().
#include "fault_bench.hpp"

#include <doctest/doctest.h>
#include <cmath>

namespace sonde::simulate {
namespace {

/// `count` routers of `rate` between the clients and the targets.
SystemModel routed_site(std::size_t count, double rate) {
    SystemModel site = add_server(small_site(4, 4, 10e9));
    for (std::size_t i = 0; i < count; ++i) {
        site.routers.push_back(add_link(site, "r" + std::to_string(i), rate));
        site.links.back().nid = site.links.back().id + "@o2ib";
        site.links.back().routed_net = "gni";
    }
    for (ClientDescription& client : site.clients) {
        client.uses_routers = true;
    }
    return site;
}

TEST_CASE("slow-node: calls, copies, adapter and counters are slowed") {
    SystemModel site = small_site(3, 3, 100e9);
    for (ClientDescription& client : site.clients) {
        client.call_cost = 100'000;
        client.link = add_link(site, client.id, 1e9);
    }
    FaultBench bench(site);
    for (std::uint32_t i = 0; i < 3; ++i) {
        bench.add(ModelCallKind::write, i, 20);
    }
    bench.begin("slow-node c1 4x");
    bench.run();
    const Time drives = transfer_time(mib, 100e9), own = 100'000 + transfer_time(mib, 1e9);
    CHECK(bench.end_times[0] == 20 * (own + drives));
    CHECK(bench.end_times[2] == bench.end_times[0]);
    CHECK(bench.end_times[1] == doctest::Approx(20 * (4 * own + drives)).epsilon(1e-6));
    const std::vector<NodeCounters>& nodes = bench.machine.get_monitoring_data().nodes;
    CHECK(nodes[1].write_bytes.sum == nodes[0].write_bytes.sum);  // it does the same work, and more slowly
    CHECK(static_cast<double>(nodes[1].write_us.sum) / static_cast<double>(nodes[0].write_us.sum) ==
          doctest::Approx(static_cast<double>(4 * own + drives) / static_cast<double>(own + drives)).epsilon(1e-3));
    CHECK(
        format_llite_stats(nodes[1], 0).find("write_bytes               20 samples [bytes] 1048576 1048576 20971520") !=
        std::string::npos);
}

TEST_CASE("router-lost: other routers carry its share, LNet logs it") {
    FaultBench bench(routed_site(4, 100e6));
    for (std::uint32_t i = 0; i < 16; ++i) {
        bench.add(ModelCallKind::write, i % 4, 300);
    }
    bench.begin("router-lost r2");
    bench.run();
    CHECK(bench.bytes_through("r2") == 0);
    for (const char* router : {"r0", "r1", "r3"}) {
        CHECK(static_cast<double>(bench.bytes_through(router)) == doctest::Approx(16 * 300 * mib / 3.0).epsilon(0.001));
    }
    CHECK(16 * 300 * mib / to_seconds(bench.last_end()) == doctest::Approx(300e6).epsilon(0.01));
    REQUIRE(bench.messages().size() == 1);
    const std::string route =
        "LNetError: 2107:0:(lib-lnet.h:1241:lnet_set_route_aliveness()) route to gni through r2@o2ib has gone from ";
    CHECK(bench.messages()[0].text == route + "up to down");
    bench.end("router-lost r2");
    REQUIRE(bench.messages().size() == 2);
    CHECK(bench.messages()[1].text == route + "down to up");
    bench.end("router-lost r2");  // twice is once
    const std::uint64_t before = bench.bytes_through("r2"), first = bench.bytes_through("r0");
    bench.run_again(300);
    CHECK(static_cast<double>(bench.bytes_through("r2") - before) ==
          doctest::Approx(16 * 300 * mib / 4.0).epsilon(0.001));
    CHECK(static_cast<double>(bench.bytes_through("r0") - first) ==
          doctest::Approx(16 * 300 * mib / 4.0).epsilon(0.001));
}

TEST_CASE("router-lost: fault of the last router is rejected") {
    CHECK(rejection(routed_site(1, 1e9), "router-lost r0").find("only router") != std::string::npos);
    FaultBench bench(routed_site(3, 1e9));
    bench.begin("router-lost r0");
    bench.begin("router-lost r0");
    bench.begin("router-lost r1 at 3s");
    CHECK_THROWS_WITH_AS(bench.begin("router-lost r2"),
                         "fault \"router-lost r2\": it is the last router, and nothing would arrive", SystemModelError);
    bench.end("router-lost r1");
    bench.begin("router-lost r2");
    bench.add(ModelCallKind::write, 0, 1000, 16 * mib);
    bench.run();  // and the one that was ended before its time does not begin
    CHECK(bench.last_end() > 3'000'000'000);
    CHECK(bench.bytes_through("r1") == 16'000 * mib);
}

TEST_CASE("unbalanced-path: first path gets its weight and limits all") {
    for (const double weight : {8.0, 2.0, 1.5}) {
        FaultBench bench(routed_site(4, 100e6));
        for (std::uint32_t i = 0; i < 16; ++i) {
            bench.add(ModelCallKind::write, i % 4, 600);
        }
        bench.begin(("unbalanced-path " + std::to_string(weight)).c_str());
        bench.run();
        const double all = 16 * 600 * mib;
        CHECK(static_cast<double>(bench.bytes_through("r0")) / all ==
              doctest::Approx(weight / (weight + 3)).epsilon(0.002));
        CHECK(static_cast<double>(bench.bytes_through("r1")) / all == doctest::Approx(1 / (weight + 3)).epsilon(0.005));
        CHECK(static_cast<double>(bench.bytes_through("r3")) / all == doctest::Approx(1 / (weight + 3)).epsilon(0.005));
        CHECK(all / to_seconds(bench.last_end()) == doctest::Approx(100e6 * (weight + 3) / weight).epsilon(0.02));
    }
    CHECK(rejection(small_site(1, 1, 1e9), "unbalanced-path").find("have one way only") != std::string::npos);
}

TEST_CASE("mds-saturated: metadata gets the remaining server time") {
    const auto run = [](const char* fault) {
        SystemModel site = small_site(1, 1, 1e9);
        site.file_system.kind = "lustre";
        FaultBench bench(site);
        for (int i = 0; i < 4; ++i) {
            bench.add(ModelCallKind::stat, 0, 500, 0);
        }
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        const MonitoringData& monitoring = bench.machine.get_monitoring_data();
        const double length = to_seconds(bench.last_end());
        CHECK(monitoring.metadata[0].calls[static_cast<std::size_t>(ModelCallKind::stat)].samples == 2000);
        CHECK(monitoring.messages.size() == (fault != nullptr ? 1 : 0));
        // One thread, 1 ms a stat: what it did for others is what ours did not take.
        CHECK(monitoring.metadata[0].background_stats * 1e-3 == doctest::Approx(length - 2000 * 1e-3).epsilon(0.02));
        return length;
    };
    CHECK(run(nullptr) == doctest::Approx(2.0).epsilon(1e-6));
    CHECK(run("mds-saturated 90%") == doctest::Approx(20.0).epsilon(0.05));
    ServerCounters counted;
    counted.background_stats = 500;
    counted.background_us = 10;
    CHECK(format_md_stats(counted, 0).find("getattr                   500 samples [usec] 10 10 5000 50000") !=
          std::string::npos);
}

/// Collects the times of calls that one stream makes one after the other.
struct TimedStream : Listener {
    Machine* machine = nullptr;
    ModelOperation operation;
    std::uint64_t remaining_calls = 0;
    Time begin_timing = 0;
    std::vector<Time> durations;

    void on_completion(const CompletedOperation& completed) override {
        durations.push_back(completed.end - begin_timing);
        begin_timing = completed.end;
        if (--remaining_calls > 0) {
            machine->submit(completed.end, operation);
        }
    }
    void on_alarm(Time, std::uint64_t) override {}
};

TEST_CASE("mds-saturated: times are distributed as in M/M/1") {
    TimedStream stream;
    Machine machine(small_site(1, 1, 1e9), {1, 0}, stream);
    stream.machine = &machine;
    stream.remaining_calls = 20'000;
    stream.operation.kind = ModelCallKind::stat;
    stream.operation.stream = machine.begin_stream(0);
    stream.operation.file = machine.get_file("f");
    machine.begin_fault(parse_fault("mds-saturated 90%"));
    machine.submit(0, stream.operation);
    while (stream.remaining_calls > 0) {
        REQUIRE(machine.handle_next_event());
    }
    std::sort(stream.durations.begin(), stream.durations.end());
    const auto quantile_ms = [&stream](double q) {
        return 1e3 * to_seconds(stream.durations[static_cast<std::size_t>(q * 20'000)]);
    };
    // A stat takes 1 ms; it waits longer than w with the probability 0.9 exp(-w / 10 ms).
    CHECK(quantile_ms(0.05) == doctest::Approx(1).epsilon(1e-6));
    CHECK(quantile_ms(0.5) == doctest::Approx(1 + 10 * std::log(0.9 / 0.5)).epsilon(0.03));
    CHECK(quantile_ms(0.99) == doctest::Approx(1 + 10 * std::log(0.9 / 0.01)).epsilon(0.05));
}

TEST_CASE("net/dev has the bytes, messages and losses of links") {
    SystemModel site = small_site(1, 1, 1e9);
    site.clients[0].link = add_link(site, "nic", 1e9);
    FaultBench bench(site);
    bench.add(ModelCallKind::write, 0, 30);
    bench.add(ModelCallKind::read, 0, 20);
    bench.begin("lossy-link nic 50%");
    bench.run();
    const LinkCounters& link = bench.machine.get_monitoring_data().links[0];
    CHECK(link.sent_bytes == 30 * mib);
    CHECK(link.sent_messages == 30);
    CHECK(link.received_bytes == 20 * mib);
    CHECK(link.received_messages == 20);
    CHECK(link.lost_messages > 20);
    CHECK(format_net_dev(bench.machine.get_monitoring_data())
              .find("   nic: 20971520 20 0 0 0 0 0 0 31457280 30 0 " + std::to_string(link.lost_messages)) !=
          std::string::npos);
}

TEST_CASE("parse_fault accepts each fault and rejects other text") {
    for (const FaultRule& rule : fault_rules) {
        const std::string part = *rule.part_kind == 0 ? "" : rule.kind == FaultKind::tunable ? " rpc_size" : " x1";
        const std::string number = *rule.amount_meaning == 0 ? "" : " 1";
        const Fault fault = parse_fault(rule.name + part + (rule.maximum < 1 ? "" : number) + " at 2s");
        CHECK(fault.kind == rule.kind);
        CHECK(fault.from == 2'000'000'000);
        CHECK(parse_fault(fault.to_text()).to_text() == fault.to_text());
    }
    for (const char* wrong :
         {"", "at 3s", "slow-target", "slow-target t0 0.5", "slow-target t0 fast", "router-lost r0 3",
          "raid-rebuild t0 96%", "noisy-neighbor nan", "tunable rpcs_in_flight 0", "tunable color 1", "cache-limit -1",
          "slow-node c0 2x at never", "slow-node c0 2x at 2TiB", "mds-saturated 1", "full-file-system 101%"}) {
        CHECK_THROWS_AS(parse_fault(wrong), SystemModelError);
    }
}

TEST_CASE("lossy-link: lost messages are sent again after 0.2 s") {
    SystemModel site = small_site(1, 1, 0);
    site.targets[0].rate = {1e12, 1e12};
    site.clients[0].link = add_link(site, "nic", 1e9);
    FaultBench bench(site);
    bench.add(ModelCallKind::write, 0, 20'000, 1'000'000);
    bench.begin("lossy-link nic 5%");
    bench.run();
    // A message is lost p / (1 - p) times on average.
    CHECK(to_seconds(bench.last_end()) / 20'000 == doctest::Approx(1e-3 + 1e-6 + 0.2 * 0.05 / 0.95).epsilon(0.05));
}

TEST_CASE("slow-link: its messages take the factor longer") {
    SystemModel site = small_site(1, 1, 0);
    site.targets[0].rate = {1e15, 1e15};
    site.clients[0].link = add_link(site, "nic", 1e9);
    FaultBench bench(site);
    bench.add(ModelCallKind::read, 0, 100, 1'000'000);
    bench.begin("slow-link nic 4x");
    bench.run();
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(100 * 4e-3).epsilon(1e-4));
}

}  // namespace
}  // namespace sonde::simulate
