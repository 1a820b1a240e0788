// SPDX-License-Identifier: Apache-2.0
// Faults of caches and of client tunables: their effects on rates, counters and logs.
#include "fault_bench.hpp"

#include <doctest/doctest.h>

namespace sonde::simulate {
namespace {

/// Reads a file twice through a server that keeps what passes it. Pages that came from its memory.
std::uint64_t hits(std::uint64_t size, const char* fault, std::uint64_t kept_to = ~0ULL) {
    SystemModel site = add_server(small_site(1, 1, 100e6));
    site.servers.back().read_cache_bytes = 1024 * mib;
    site.servers.back().max_cached_file_bytes = kept_to;
    FaultBench bench(site);
    bench.add(ModelCallKind::read, 0, size / mib);
    if (fault != nullptr) {
        bench.begin(fault);
    }
    bench.run();
    const Time before = bench.last_end();
    bench.run_again(size / mib);
    const bool from_memory = bench.last_end() == before;
    CHECK(from_memory == (bench.target(0).cache_hits == size / 4096));
    CHECK(bench.target(0).cache_hits + bench.target(0).cache_misses ==
          (fault == nullptr || from_memory ? 2 : 0) * size / 4096);
    return bench.target(0).cache_hits;
}

TEST_CASE("cache-limit: server caches only files up to the limit") {
    CHECK(hits(8 * mib, nullptr) == 8 * mib / 4096);
    CHECK(hits(8 * mib, "cache-limit 8 MiB") == 8 * mib / 4096);
    CHECK(hits(8 * mib, "cache-limit 7 MiB") == 0);
    CHECK(hits(8 * mib, "cache-limit 0") == 0);
    CHECK(rejection(add_server(small_site(1, 1, 1e9)), "cache-limit").find("no server") != std::string::npos);
    // When it ends, the limit is that of the system again.
    SystemModel site = add_server(small_site(1, 1, 100e6));
    site.servers.back().read_cache_bytes = 1024 * mib;
    site.servers.back().max_cached_file_bytes = 4 * mib;
    FaultBench bench(site);
    bench.add(ModelCallKind::read, 0, 8);
    bench.begin("cache-limit 1 GiB");
    bench.end("cache-limit");
    bench.run();
    bench.run_again(8);
    CHECK(bench.target(0).cache_hits == 0);
}

TEST_CASE("tunable: rpc_size limits the size of requests") {
    FaultBench bench(small_site(1, 1, 100e6));
    bench.add(ModelCallKind::write, 0, 4);
    bench.begin("tunable rpc_size 256 KiB");
    bench.run();
    CHECK(bench.target(0).write_bytes.samples == 16);
    CHECK(bench.target(0).write_pages[6] == 16);  // 64 pages
    bench.end("tunable rpc_size");
    bench.run_again(4);
    CHECK(bench.target(0).write_bytes.samples == 20);
}

TEST_CASE("tunable: rpcs_in_flight limits requests to a target") {
    const auto time = [](const char* fault) {
        SystemModel site = small_site(1, 1, 0);
        site.targets[0].request_cost = 1'000'000;  // side by side
        site.clients[0].link = add_link(site, "way", 0, 4'500'000);
        FaultBench bench(site);
        bench.add(ModelCallKind::write, 0, 5, 16 * mib);
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        return bench.last_end();
    };
    CHECK(time(nullptr) == 5 * 2 * 10'000'000);  // 8 at a time
    CHECK(time("tunable rpcs_in_flight 1") == 5 * 16 * 10'000'000);
    CHECK(time("tunable rpcs_in_flight 4") == 5 * 4 * 10'000'000);
}

TEST_CASE("tunable: dirty limits bound the unstored data of a node") {
    const auto time = [](const char* fault) {
        SystemModel site = small_site(1, 2, 100e6);
        site.file_system.stripe_size = 64 * mib;
        site.clients[0].copy_rate = 10e9;
        FaultBench bench(site);
        bench.add(ModelCallKind::write, 0, 64, mib, false);
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        return to_seconds(bench.last_end());
    };
    const double copies = 64 * mib / 10e9, store = mib / 100e6;
    CHECK(time(nullptr) == doctest::Approx(copies).epsilon(0.001));
    // The call that finds 16 MiB waiting waits until the first of them is stored: 48 have been when the last one is
    // taken.
    CHECK(time("tunable dirty_limit 16 MiB") == doctest::Approx(48 * store + mib / 10e9).epsilon(0.01));
    CHECK(time("tunable dirty_per_target 16 MiB") == doctest::Approx(48 * store + mib / 10e9).epsilon(0.01));
}

TEST_CASE("tunable: read_ahead 0 and page_cache 0 disable both") {
    SystemModel site = small_site(1, 1, 0);
    site.targets[0].request_cost = 1'000;
    site.clients[0].link = add_link(site, "way", 0, 1'000'000);
    site.clients[0].read_ahead_bytes = 64 * mib;
    site.clients[0].page_cache_bytes = 256 * mib;
    {
        FaultBench bench(site);
        bench.add(ModelCallKind::read, 0, 100, 65536, false);
        bench.begin("tunable read_ahead 0");
        bench.run();
        CHECK(bench.last_end() == 100 * 2'001'000);
        const std::uint64_t once = bench.target(0).read_bytes.sum;
        bench.run_again(100);
        CHECK(bench.target(0).read_bytes.sum == once);
    }
    FaultBench ahead(site);
    ahead.add(ModelCallKind::read, 0, 100, 65536, false);
    ahead.run();
    CHECK(ahead.last_end() < 20 * 2'001'000);
    FaultBench bench(site);
    bench.add(ModelCallKind::read, 0, 100, 65536, false);
    bench.begin("tunable read_ahead 0");
    bench.begin("tunable page_cache 0");
    bench.run();
    bench.run_again(100);
    CHECK(bench.target(0).read_bytes.sum == 200 * 65536);
}

TEST_CASE("client-software: page cost grows with written pages of file") {
    SystemModel site = small_site(1, 2, 0);
    site.targets[0].request_cost = site.targets[1].request_cost = 1'000;
    site.clients[0].page_cache_bytes = 4096 * mib;
    constexpr double cost = 1e-9;
    FaultBench bench(site);
    bench.add(ModelCallKind::write, 0, 64, mib, false);
    bench.run();  // now it has 64 MiB of the file, all of it
    bench.next_operations[0].kind = ModelCallKind::read;
    bench.run_again(64);
    Time before = bench.last_end();
    bench.begin("client-software 1ns");
    bench.run_again(64);
    const double held = 64 * mib / 4096.0, wanted = mib / 4096.0;
    CHECK(to_seconds(bench.last_end() - before) == doctest::Approx(64 * cost * held * wanted).epsilon(1e-6));
    // A second task on the node waits for the same lock.
    bench.add(ModelCallKind::read, 0, 0, mib, false, "f0");
    before = bench.machine.now();
    bench.run_again(64);
    CHECK(to_seconds(bench.last_end() - before) == doctest::Approx(2 * 64 * cost * held * wanted).epsilon(0.01));
    // Cached reads cost no time, and a client without faults costs none either.
    for (int round = 0; round < 2; ++round) {
        bench.machine.drop_client_caches(0);
        before = bench.machine.now();
        bench.run_again(64);
        bench.run_again(64);
        CHECK(to_seconds(bench.last_end() - before) < 2 * 64 * cost * held * wanted / 10);
        bench.end("client-software");
    }
    CHECK(rejection(small_site(1, 1, 1e9), "client-software").find("page cache") != std::string::npos);
}

}  // namespace
}  // namespace sonde::simulate
