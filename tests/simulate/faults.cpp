// SPDX-License-Identifier: Apache-2.0
// Each fault against what it is said to do: to rates, to the counters of targets and nodes, and to the logs. On
// machines small enough that the truth is arithmetic.
#include "kernel/random.hpp"
#include "small_site.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace sonde::simulate {
namespace {

/// Streams that call one after the other, each on a file of its own that lies on target number (stream % targets).
struct Bench : Listener {
    Machine machine;
    std::vector<Operation> next;
    std::vector<std::uint64_t> left;
    std::vector<Time> ended;  ///< by stream: of its last call

    explicit Bench(const SiteModel& site, std::uint64_t seed = 1, Time sample = 0)
        : machine(site, {seed, sample}, *this) {}

    void add(Call call, std::uint32_t client, std::uint64_t calls, std::uint64_t transfer = mib, bool direct = true,
             const std::string& name = {}) {
        const auto number = static_cast<std::uint32_t>(next.size());
        Operation operation;
        operation.call = call;
        operation.direct = direct;
        operation.length = transfer;
        operation.stream = machine.stream(client);
        operation.file = machine.file(name.empty() ? "f" + std::to_string(number) : name);
        operation.tag = number;
        const auto targets = static_cast<std::uint32_t>(machine.site().targets.size());
        if (machine.size(operation.file) == 0) {
            machine.set_layout(operation.file, {machine.layout(operation.file).size, 1, number % targets});
        }
        if (call == Call::read) {
            machine.resize(operation.file, std::max(machine.size(operation.file), calls * transfer));
        }
        next.push_back(operation);
        left.push_back(calls);
        ended.push_back(0);
    }
    /// Until all calls are done; their number of streams may be given more of by setting `left` again.
    void run() {
        for (Operation& operation : next) {
            if (left[operation.tag] > 0) {
                machine.submit(machine.now(), operation);
            }
        }
        while (std::any_of(left.begin(), left.end(), [](std::uint64_t calls) { return calls > 0; })) {
            REQUIRE(machine.step());
        }
    }
    void again(std::uint64_t calls) {
        for (std::size_t i = 0; i < next.size(); ++i) {
            next[i].offset = 0;
            left[i] = calls;
        }
        run();
    }
    Time last() const { return *std::max_element(ended.begin(), ended.end()); }
    const TargetTrace& target(std::size_t i) const { return machine.traces().targets[i]; }
    const std::vector<Message>& messages() const { return machine.traces().messages; }
    std::uint64_t through(const std::string& part) const {
        for (const Machine::Flow& flow : machine.flows()) {
            if (flow.part == part) {
                return flow.written + flow.read;
            }
        }
        FAIL("no part " << part);
        return 0;
    }
    void begin(const char* fault) { machine.begin_fault(parse_fault(fault)); }
    void end(const char* fault) { machine.end_fault(parse_fault(fault)); }

    void done(const Done& what) override {
        ended[what.tag] = what.at;
        Operation& operation = next[what.tag];
        operation.offset += operation.length;
        if (--left[what.tag] > 0) {
            machine.submit(what.at, operation);
        }
    }
    void woken(Time, std::uint64_t) override {}
};

std::string refused(const SiteModel& site, const char* fault) {
    Bench bench(site);
    try {
        bench.begin(fault);
    } catch (const SiteError& error) {
        return error.what();
    }
    return "accepted";
}

SiteModel with_server(SiteModel site) {
    ServerSite server;
    server.id = "oss";
    site.servers.push_back(server);
    for (TargetSite& target : site.targets) {
        target.server = static_cast<int>(site.servers.size()) - 1;
    }
    return site;
}

/// `count` routers of `rate` between the clients and the targets.
SiteModel routed_site(std::size_t count, double rate) {
    SiteModel site = with_server(small_site(4, 4, 10e9));
    for (std::size_t i = 0; i < count; ++i) {
        site.routers.push_back(add_link(site, "r" + std::to_string(i), rate));
    }
    for (ClientSite& client : site.clients) {
        client.routed = true;
    }
    return site;
}

MediumSite hard_disk(double rate) {
    MediumSite medium;
    medium.rate = {rate, rate};
    medium.inner_rate = 0.5;
    medium.seek = time_of(8e-3);
    medium.rotation = time_of(8e-3);
    medium.elevator = true;
    medium.segment = 128U << 10U;
    return medium;
}

/// One target on 8 data drives and one of parity, segment 256 KiB.
SiteModel raid_site(double rate) {
    SiteModel site = small_site(1, 1, 0);
    site.fs.local = true;
    site.fs.stripe_size = 1024 * mib;
    site.targets[0].rate = {};
    MediumSite medium;
    medium.id = "md0";
    medium.data = 8;
    medium.drives = 9;
    medium.segment = 256U << 10U;
    medium.parity = true;
    medium.rate = {rate, rate};
    site.media.push_back(medium);
    site.targets[0].medium = 0;
    return site;
}

TEST_CASE("slow-target: its requests take so many times as long, from when it begins, and those of others do not") {
    Bench bench(small_site(4, 4, 100e6));
    for (std::uint32_t i = 0; i < 4; ++i) {
        bench.add(Call::write, i, 50);
    }
    const Time sound = time_for(mib, 100e6);
    bench.begin("slow-target 2 5x");
    bench.run();
    for (const std::size_t i : {0U, 1U, 3U}) {
        CHECK(bench.ended[i] == 50 * sound);
        CHECK(bench.target(i).write_us.sum == 50 * static_cast<std::uint64_t>(sound / 1000));
    }
    CHECK(seconds(bench.ended[2]) == doctest::Approx(5 * 50 * seconds(sound)).epsilon(1e-6));
    CHECK(bench.target(2).write_us.sum == doctest::Approx(5 * 50 * 1e6 * seconds(sound)).epsilon(1e-3));
    CHECK(bench.target(2).write_bytes.sum == 50 * mib);
    REQUIRE(bench.messages().size() == 1);
    CHECK(bench.messages()[0].text.find("slow start_page_write") != std::string::npos);
    const Time before = bench.machine.now();
    bench.end("slow-target 2 5x");
    bench.again(50);
    CHECK(bench.last() - before == 50 * sound);
}

TEST_CASE("slow-target: one that is planned begins at its time") {
    Bench bench(small_site(1, 1, 100e6));
    bench.add(Call::write, 0, 100);
    bench.begin("slow-target t0 3x at 500ms");
    bench.run();
    const double one = mib / 100e6;
    const double sound = std::ceil(0.5 / one);  // the one under way at that time ends as it began
    CHECK(seconds(bench.last()) == doctest::Approx(one * (sound + 3 * (100 - sound))).epsilon(1e-6));
}

TEST_CASE("slow-node: its calls, copies and adapter take so many times as long, and its counters say so") {
    SiteModel site = small_site(3, 3, 100e9);
    for (ClientSite& client : site.clients) {
        client.call_cost = 100'000;
        client.link = add_link(site, client.id, 1e9);
    }
    Bench bench(site);
    for (std::uint32_t i = 0; i < 3; ++i) {
        bench.add(Call::write, i, 20);
    }
    bench.begin("slow-node c1 4x");
    bench.run();
    const Time drives = time_for(mib, 100e9), own = 100'000 + time_for(mib, 1e9);
    CHECK(bench.ended[0] == 20 * (own + drives));
    CHECK(bench.ended[2] == bench.ended[0]);
    CHECK(bench.ended[1] == doctest::Approx(20 * (4 * own + drives)).epsilon(1e-6));
    const std::vector<NodeTrace>& nodes = bench.machine.traces().nodes;
    CHECK(nodes[1].write_bytes.sum == nodes[0].write_bytes.sum);  // it does the same work, and more slowly
    CHECK(static_cast<double>(nodes[1].write_us.sum) / static_cast<double>(nodes[0].write_us.sum) ==
          doctest::Approx(static_cast<double>(4 * own + drives) / static_cast<double>(own + drives)).epsilon(1e-3));
    CHECK(llite_text(nodes[1], 0).find("write_bytes               20 samples [bytes] 1048576 1048576 20971520") !=
          std::string::npos);
}

TEST_CASE(
    "failing-drive: so many requests are tried again half a second later, and the log has an error now and then") {
    const SiteModel site = with_server(small_site(1, 2, 100e6));
    SUBCASE("all of them") {
        Bench bench(site);
        bench.add(Call::read, 0, 40);
        bench.begin("failing-drive t0 1");
        bench.run();
        CHECK(bench.last() == 40 * (time_for(mib, 100e6) + 500'000'000));
        CHECK(bench.target(0).retries == 40);
        CHECK(bench.messages().size() == 3);  // of the 1st, 17th and 33rd
        CHECK(bench.messages()[0].text.find("I/O error, dev t0") != std::string::npos);
        CHECK(bench.messages()[0].host == "oss");
    }
    SUBCASE("one in ten, and none at another target") {
        Bench bench(site);
        bench.add(Call::read, 0, 4000);
        bench.add(Call::read, 0, 4000);
        bench.begin("failing-drive t0 10%");
        bench.run();
        const auto retries = static_cast<double>(bench.target(0).retries);
        CHECK(std::abs(retries - 400) < 3.5 * std::sqrt(4000 * 0.1 * 0.9));
        CHECK(seconds(bench.ended[0]) == doctest::Approx(4000 * mib / 100e6 + retries * 0.5).epsilon(1e-6));
        CHECK(bench.target(1).retries == 0);
        CHECK(bench.ended[1] == 4000 * time_for(mib, 100e6));
    }
}

TEST_CASE("raid-rebuild: the rate is what the missing drive and its rebuild leave, and md says so") {
    SiteModel site = with_server(raid_site(100e6));
    site.fs.local = false;
    site.media[0].degraded_share = 0.75;
    site.media[0].rebuild_share = 0.4;
    const auto time = [&site](const char* fault) {
        Bench bench(site);
        bench.add(Call::read, 0, 10, 2 * mib);
        if (fault != nullptr) {
            bench.begin(fault);
            CHECK(bench.messages().size() == 2);
            CHECK(bench.messages()[0].text == "md/raid:md0: Disk failure, disabling device.");
            CHECK(bench.messages()[1].text == "md: recovery of RAID array md0");
        }
        bench.run();
        return seconds(bench.last());
    };
    const double sound = time(nullptr);
    CHECK(time("raid-rebuild t0 20%") == doctest::Approx(sound / (0.8 * 0.75)).epsilon(1e-6));
    // Without a number it is what the RAID group says of its rebuilds.
    CHECK(time("raid-rebuild t0") == doctest::Approx(sound / (0.6 * 0.75)).epsilon(1e-6));
    Bench bench(site);
    bench.add(Call::read, 0, 10, 2 * mib);
    bench.begin("raid-rebuild t0");
    bench.end("raid-rebuild t0");
    bench.run();
    CHECK(seconds(bench.last()) == doctest::Approx(sound).epsilon(1e-9));
    CHECK(bench.messages().back().text == "md: md0: recovery done.");
}

TEST_CASE("noisy-neighbour: a stream that keeps a target busy gets what others leave, and they are in its counters") {
    SiteModel site = small_site(1, 1, 100e6);
    Bench bench(site);
    for (int i = 0; i < 8; ++i) {  // enough that the target always has some of ours
        bench.add(Call::write, 0, 1000);
    }
    bench.begin("noisy-neighbour 40%");
    bench.run();
    CHECK(8000 * mib / seconds(bench.last()) == doctest::Approx(60e6).epsilon(0.02));
    const TargetTrace& trace = bench.target(0);
    CHECK(static_cast<double>(trace.other_bytes) / seconds(bench.last()) == doctest::Approx(40e6).epsilon(0.05));
    CHECK(trace.write_bytes.sum == 8000 * mib + trace.other_bytes);
    // Switched off and on, there is one of them, not two; off, there is none.
    bench.end("noisy-neighbour");
    bench.begin("noisy-neighbour 40%");
    Time before = bench.last();
    bench.again(1000);
    CHECK(8000 * mib / seconds(bench.last() - before) == doctest::Approx(60e6).epsilon(0.03));
    bench.end("noisy-neighbour");
    bench.again(10);
    before = bench.last();
    bench.again(100);
    CHECK(800 * mib / seconds(bench.last() - before) == doctest::Approx(100e6).epsilon(0.001));
}

TEST_CASE("noisy-neighbour: a call waits for others as long as M/D/1 says") {
    SiteModel site = small_site(1, 1, 100e6);
    site.clients[0].call_cost = 200'000'000;  // so far apart that each finds the others as they are on average
    Bench bench(site);
    bench.add(Call::write, 0, 20'000, 4096);
    bench.begin("noisy-neighbour 50%");
    bench.run();
    const double others = mib / 100e6, load = 0.5;
    const double wait = load * others / (2 * (1 - load));
    const double seen = seconds(bench.last()) / 20'000 - 0.2 - 4096 / 100e6;
    CHECK(seen == doctest::Approx(wait).epsilon(0.03));
}

TEST_CASE("router-lost: nothing goes through it any more, the others carry its share, and LNet says so") {
    Bench bench(routed_site(4, 100e6));
    for (std::uint32_t i = 0; i < 16; ++i) {
        bench.add(Call::write, i % 4, 300);
    }
    bench.begin("router-lost r2");
    bench.run();
    CHECK(bench.through("r2") == 0);
    for (const char* router : {"r0", "r1", "r3"}) {
        CHECK(static_cast<double>(bench.through(router)) == doctest::Approx(16 * 300 * mib / 3.0).epsilon(0.001));
    }
    CHECK(16 * 300 * mib / seconds(bench.last()) == doctest::Approx(300e6).epsilon(0.01));
    REQUIRE(bench.messages().size() == 1);
    CHECK(bench.messages()[0].text == "LNet: router r2 is down");
    bench.end("router-lost r2");
    bench.end("router-lost r2");  // twice is once
    const std::uint64_t before = bench.through("r2"), first = bench.through("r0");
    bench.again(300);
    CHECK(static_cast<double>(bench.through("r2") - before) == doctest::Approx(16 * 300 * mib / 4.0).epsilon(0.001));
    CHECK(static_cast<double>(bench.through("r0") - first) == doctest::Approx(16 * 300 * mib / 4.0).epsilon(0.001));
}

TEST_CASE("router-lost: the last router cannot be lost") {
    CHECK(refused(routed_site(1, 1e9), "router-lost r0").find("only router") != std::string::npos);
    Bench bench(routed_site(3, 1e9));
    bench.begin("router-lost r0");
    bench.begin("router-lost r0");
    bench.begin("router-lost r1 at 3s");
    CHECK_THROWS_WITH_AS(bench.begin("router-lost r2"),
                         "fault \"router-lost r2\": it is the last router, and nothing would arrive", SiteError);
    bench.end("router-lost r1");
    bench.begin("router-lost r2");
    bench.add(Call::write, 0, 1000, 16 * mib);
    bench.run();  // and the one that was ended before its time does not begin
    CHECK(bench.last() > 3'000'000'000);
    CHECK(bench.through("r1") == 16'000 * mib);
}

TEST_CASE("unbalanced-path: the first way gets so many times the share of another, and limits them all") {
    for (const double weight : {8.0, 2.0, 1.5}) {
        Bench bench(routed_site(4, 100e6));
        for (std::uint32_t i = 0; i < 16; ++i) {
            bench.add(Call::write, i % 4, 600);
        }
        bench.begin(("unbalanced-path " + std::to_string(weight)).c_str());
        bench.run();
        const double all = 16 * 600 * mib;
        CHECK(static_cast<double>(bench.through("r0")) / all == doctest::Approx(weight / (weight + 3)).epsilon(0.002));
        CHECK(static_cast<double>(bench.through("r1")) / all == doctest::Approx(1 / (weight + 3)).epsilon(0.005));
        CHECK(static_cast<double>(bench.through("r3")) / all == doctest::Approx(1 / (weight + 3)).epsilon(0.005));
        CHECK(all / seconds(bench.last()) == doctest::Approx(100e6 * (weight + 3) / weight).epsilon(0.02));
    }
    CHECK(refused(small_site(1, 1, 1e9), "unbalanced-path").find("have one way only") != std::string::npos);
}

TEST_CASE("mds-saturated: names get what others leave of the servers' time, and their calls are in the counters") {
    const auto run = [](const char* fault) {
        Bench bench(small_site(1, 1, 1e9));
        for (int i = 0; i < 4; ++i) {
            bench.add(Call::stat, 0, 500, 0);
        }
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        const Traces& traces = bench.machine.traces();
        const double length = seconds(bench.last());
        CHECK(traces.metadata[0].calls[static_cast<std::size_t>(Call::stat)].samples == 2000);
        CHECK(traces.messages.size() == (fault != nullptr ? 1 : 0));
        // One thread, 1 ms a stat: what it did for others is what ours did not take.
        CHECK(traces.metadata[0].others * 1e-3 == doctest::Approx(length - 2000 * 1e-3).epsilon(0.001));
        return length;
    };
    CHECK(run(nullptr) == doctest::Approx(2.0).epsilon(1e-6));
    CHECK(run("mds-saturated 90%") == doctest::Approx(20.0).epsilon(1e-6));
    ServerTrace counted;
    counted.others = 500;
    counted.other_us = 10;
    CHECK(md_stats_text(counted, 0).find("getattr                   500 samples [usec] 10 10 5000 50000") !=
          std::string::npos);
}

/// Reads a file twice through a server that keeps what passes it. Pages that came from its memory.
std::uint64_t hits(std::uint64_t size, const char* fault, std::uint64_t kept_to = ~0ULL) {
    SiteModel site = with_server(small_site(1, 1, 100e6));
    site.servers.back().cache = 1024 * mib;
    site.servers.back().cache_max_file = kept_to;
    Bench bench(site);
    bench.add(Call::read, 0, size / mib);
    if (fault != nullptr) {
        bench.begin(fault);
    }
    bench.run();
    const Time before = bench.last();
    bench.again(size / mib);
    const bool from_memory = bench.last() == before;
    CHECK(from_memory == (bench.target(0).cache_hits == size / 4096));
    CHECK(bench.target(0).cache_hits + bench.target(0).cache_misses ==
          (fault == nullptr || from_memory ? 2 : 0) * size / 4096);
    return bench.target(0).cache_hits;
}

TEST_CASE("cache-limit: a server keeps files up to this size and no others") {
    CHECK(hits(8 * mib, nullptr) == 8 * mib / 4096);
    CHECK(hits(8 * mib, "cache-limit 8 MiB") == 8 * mib / 4096);
    CHECK(hits(8 * mib, "cache-limit 7 MiB") == 0);
    CHECK(hits(8 * mib, "cache-limit 0") == 0);
    CHECK(refused(with_server(small_site(1, 1, 1e9)), "cache-limit").find("no server") != std::string::npos);
    // When it ends, the limit is that of the system again.
    SiteModel site = with_server(small_site(1, 1, 100e6));
    site.servers.back().cache = 1024 * mib;
    site.servers.back().cache_max_file = 4 * mib;
    Bench bench(site);
    bench.add(Call::read, 0, 8);
    bench.begin("cache-limit 1 GiB");
    bench.end("cache-limit");
    bench.run();
    bench.again(8);
    CHECK(bench.target(0).cache_hits == 0);
}

TEST_CASE("tunable: rpc_size is the largest request") {
    Bench bench(small_site(1, 1, 100e6));
    bench.add(Call::write, 0, 4);
    bench.begin("tunable rpc_size 256 KiB");
    bench.run();
    CHECK(bench.target(0).write_bytes.samples == 16);
    CHECK(bench.target(0).write_pages[6] == 16);  // 64 pages
    bench.end("tunable rpc_size");
    bench.again(4);
    CHECK(bench.target(0).write_bytes.samples == 20);
}

TEST_CASE("tunable: rpcs_in_flight is how many requests are under way to a target") {
    const auto time = [](const char* fault) {
        SiteModel site = small_site(1, 1, 0);
        site.targets[0].request_cost = 1'000'000;  // side by side
        site.clients[0].link = add_link(site, "way", 0, 4'500'000);
        Bench bench(site);
        bench.add(Call::write, 0, 5, 16 * mib);
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        return bench.last();
    };
    CHECK(time(nullptr) == 5 * 2 * 10'000'000);  // 8 at a time
    CHECK(time("tunable rpcs_in_flight 1") == 5 * 16 * 10'000'000);
    CHECK(time("tunable rpcs_in_flight 4") == 5 * 4 * 10'000'000);
}

TEST_CASE("tunable: dirty_limit and dirty_per_target are what a node may have written and not yet stored") {
    const auto time = [](const char* fault) {
        SiteModel site = small_site(1, 2, 100e6);
        site.fs.stripe_size = 64 * mib;
        site.clients[0].copy_rate = 10e9;
        Bench bench(site);
        bench.add(Call::write, 0, 64, mib, false);
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        return seconds(bench.last());
    };
    const double copies = 64 * mib / 10e9, store = mib / 100e6;
    CHECK(time(nullptr) == doctest::Approx(copies).epsilon(0.001));
    // The call that finds 16 MiB waiting waits until the first of them is stored: 48 have been when the last one is
    // taken.
    CHECK(time("tunable dirty_limit 16 MiB") == doctest::Approx(48 * store + mib / 10e9).epsilon(0.01));
    CHECK(time("tunable dirty_per_target 16 MiB") == doctest::Approx(48 * store + mib / 10e9).epsilon(0.01));
}

TEST_CASE("tunable: without read_ahead each read waits for the way, and without page_cache nothing is read twice") {
    SiteModel site = small_site(1, 1, 0);
    site.targets[0].request_cost = 1'000;
    site.clients[0].link = add_link(site, "way", 0, 1'000'000);
    site.clients[0].read_ahead = 64 * mib;
    site.clients[0].page_cache = 256 * mib;
    {
        Bench bench(site);
        bench.add(Call::read, 0, 100, 65536, false);
        bench.begin("tunable read_ahead 0");
        bench.run();
        CHECK(bench.last() == 100 * 2'001'000);
        const std::uint64_t once = bench.target(0).read_bytes.sum;
        bench.again(100);
        CHECK(bench.target(0).read_bytes.sum == once);
    }
    Bench ahead(site);
    ahead.add(Call::read, 0, 100, 65536, false);
    ahead.run();
    CHECK(ahead.last() < 20 * 2'001'000);
    Bench bench(site);
    bench.add(Call::read, 0, 100, 65536, false);
    bench.begin("tunable read_ahead 0");
    bench.begin("tunable page_cache 0");
    bench.run();
    bench.again(100);
    CHECK(bench.target(0).read_bytes.sum == 200 * 65536);
}

TEST_CASE("client-software: a page costs so much for each page that the node has of the file, under one lock") {
    SiteModel site = small_site(1, 2, 0);
    site.targets[0].request_cost = site.targets[1].request_cost = 1'000;
    site.clients[0].page_cache = 4096 * mib;
    constexpr double cost = 1e-9;
    Bench bench(site);
    bench.add(Call::read, 0, 64, mib, false);
    bench.run();  // now it has 64 MiB of the file, all of it
    Time before = bench.last();
    bench.begin("client-software 1ns");
    bench.again(64);
    const double held = 64 * mib / 4096.0, wanted = mib / 4096.0;
    CHECK(seconds(bench.last() - before) == doctest::Approx(64 * cost * held * wanted).epsilon(1e-6));
    // A second task on the node waits for the same lock.
    bench.add(Call::read, 0, 0, mib, false, "f0");
    before = bench.machine.now();
    bench.again(64);
    CHECK(seconds(bench.last() - before) == doctest::Approx(2 * 64 * cost * held * wanted).epsilon(0.01));
    // What is not cached costs nothing, and a sound client neither.
    bench.machine.drop_caches(0);
    bench.end("client-software");
    before = bench.machine.now();
    bench.again(64);
    CHECK(seconds(bench.last() - before) < 64 * cost * held * wanted / 10);
    CHECK(refused(small_site(1, 1, 1e9), "client-software").find("page cache") != std::string::npos);
}

TEST_CASE("full-file-system: new files lie further in and in pieces, old ones stay, and there is less room") {
    SiteModel site = small_site(1, 1, 0);
    site.fs.local = true;
    site.fs.stripe_size = 1024 * mib;
    site.targets[0].rate = {};
    site.targets[0].medium = 0;
    site.targets[0].capacity = 1000 * mib;
    site.media.push_back(hard_disk(100e6));
    const auto times = [&site](const char* fault) {
        std::vector<double> all;
        Bench bench(site);
        bench.add(Call::write, 0, 1);
        bench.run();
        const double old = seconds(bench.last());
        if (fault != nullptr) {
            bench.begin(fault);
        }
        for (int i = 0; i < 400; ++i) {
            const Time before = bench.machine.now();
            bench.left.assign(bench.left.size(), 0);
            bench.add(Call::write, 0, 1);
            bench.run();
            all.push_back(seconds(bench.last() - before));
        }
        const Time before = bench.machine.now();
        bench.left.assign(bench.left.size(), 0);
        bench.left[0] = 1;
        bench.next[0].offset = 0;
        bench.run();
        CHECK(seconds(bench.last() - before) == doctest::Approx(old).epsilon(1e-6));
        return all;
    };
    const auto mean_of = [](const std::vector<double>& of) {
        return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
    };
    const double one = mib / 100e6;
    const std::vector<double> clean = times(nullptr);
    CHECK(*std::min_element(clean.begin(), clean.end()) == doctest::Approx(one).epsilon(1e-6));
    CHECK(*std::max_element(clean.begin(), clean.end()) == doctest::Approx(one).epsilon(1e-6));
    // Half full: anywhere on the drives. 1 / (1 - x / 2) with x uniform in 0 … 1 is 2 ln 2 on average, and at most 2.
    const std::vector<double> half = times("full-file-system 50%");
    CHECK(mean_of(half) == doctest::Approx(one * 2 * std::log(2)).epsilon(0.04));
    CHECK(*std::max_element(half.begin(), half.end()) < 2 * one * 1.001);
    CHECK(*std::max_element(half.begin(), half.end()) > 1.9 * one);
    // 90 %: in ten pieces beside that, nine moves of the arm of 12 ms.
    const std::vector<double> full = times("full-file-system 90%");
    CHECK(mean_of(full) - 9 * 12e-3 == doctest::Approx(one * 2 * std::log(2)).epsilon(0.04));
    Bench bench(site);
    bench.begin("full-file-system 90%");
    bench.add(Call::write, 0, 20);
    bench.run();
    CHECK(bench.target(0).space == 100 * mib - 20 * mib);
    CHECK(refused(small_site(1, 1, 1e9), "full-file-system").find("where files lie costs nothing") !=
          std::string::npos);
}

TEST_CASE("full-file-system: moves of arms of several drives are shared by them") {
    SiteModel site = small_site(1, 1, 100e6);  // the target says what its drives do together
    site.fs.stripe_size = 1024 * mib;
    MediumSite medium = hard_disk(0);
    medium.rate = {};
    medium.inner_rate = 1;
    medium.drives = 10;
    site.media.push_back(medium);
    site.targets[0].medium = 0;
    Bench bench(site);
    bench.begin("full-file-system 90%");
    bench.add(Call::write, 0, 100);
    bench.run();
    // Ten pieces of about 100 KiB, each on one drive of ten; moving bytes and moving arms is the same drives' time.
    CHECK(seconds(bench.last()) == doctest::Approx(100 * (mib / 100e6 + 9 * 12e-3 / 10)).epsilon(1e-4));
}

TEST_CASE("misaligned-slices: whole stripes become parts of two, reads stay, and the drives are seen to read") {
    const SiteModel site = raid_site(272e6);
    const auto run = [&site](Call call, const char* fault, std::uint64_t& read) {
        Bench bench(site);
        bench.add(call, 0, 50, 2 * mib);
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        read = bench.machine.traces().media[0].read_bytes;
        CHECK(bench.machine.traces().media[0].written_bytes == (call == Call::write ? 100 * mib : 0));
        return seconds(bench.last());
    };
    std::uint64_t read = 0;
    const double aligned = run(Call::write, nullptr, read);
    CHECK(read == 0);
    // Old data and parity of both parts are read: 2 MiB, and a segment of parity for each part.
    CHECK(run(Call::write, "misaligned-slices 256 KiB", read) ==
          doctest::Approx(aligned * (2 + 2.0 / 9)).epsilon(1e-6));
    CHECK(read == 50 * (2 * mib + 2 * 262144));
    CHECK(run(Call::write, "misaligned-slices 2 MiB", read) == doctest::Approx(aligned).epsilon(1e-9));
    CHECK(run(Call::read, "misaligned-slices 256 KiB", read) ==
          doctest::Approx(run(Call::read, nullptr, read)).epsilon(1e-9));
    CHECK(refused(small_site(1, 1, 1e9), "misaligned-slices").find("parity") != std::string::npos);
}

TEST_CASE("every fault is as it is written, and no other is one") {
    for (const FaultRule& rule : fault_rules) {
        const std::string part = *rule.part == 0 ? "" : rule.kind == FaultKind::tunable ? " rpc_size" : " x1";
        const std::string number = *rule.amount == 0 ? "" : " 1";
        const Fault fault = parse_fault(rule.name + part + (rule.most < 1 ? "" : number) + " at 2s");
        CHECK(fault.kind == rule.kind);
        CHECK(fault.from == 2'000'000'000);
        CHECK(parse_fault(fault.text()).text() == fault.text());
    }
    for (const char* wrong :
         {"", "at 3s", "slow-target", "slow-target t0 0.5", "slow-target t0 fast", "router-lost r0 3",
          "raid-rebuild t0 96%", "noisy-neighbour nan", "tunable rpcs_in_flight 0", "tunable colour 1",
          "cache-limit -1", "slow-node c0 2x at never", "slow-node c0 2x at 2TiB", "mds-saturated 1",
          "full-file-system 101%"}) {
        CHECK_THROWS_AS(parse_fault(wrong), SiteError);
    }
}

}  // namespace
}  // namespace sonde::simulate
