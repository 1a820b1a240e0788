// SPDX-License-Identifier: Apache-2.0
// The write-back cache of a controller and the fault write-through.
#include "fault_bench.hpp"
#include "system/system_model_reader.hpp"

#include <nlohmann/json.hpp>

namespace sonde::simulate {
namespace {

constexpr std::uint64_t call_bytes = 64U << 10U;
constexpr double rate = 800e6;  // of eight data drives together

SystemModel cached_site(std::uint64_t cache_bytes) {
    SystemModel site = raid_site(rate);
    site.write_caches.push_back({"rc", cache_bytes});
    site.media[0].write_cache = 0;
    return site;
}

/// Seconds on the busiest drive for a write of part of one segment: old data and parity are read first, and parity
/// rotates over nine drives.
double partial_write_s(std::uint64_t length) {
    return 2.0 * static_cast<double>(length) * (1 + 1.0 / 9) / (rate / 8);
}

TEST_CASE("write cache gathers small writes to full stripes") {
    const auto run = [](const char* fault) {
        FaultBench bench(cached_site(4 * mib));
        bench.add(ModelCallKind::write, 0, 3200, call_bytes);
        if (fault != nullptr) {
            bench.begin(fault);
        }
        bench.run();
        return to_seconds(bench.last_end());
    };
    // 100 stripes of 2 MiB; the last two are in the cache when the last call returns.
    CHECK(run(nullptr) == doctest::Approx(98 * 2 * mib / rate).epsilon(1e-6));
    CHECK(run("write-through rc") == doctest::Approx(3200 * partial_write_s(call_bytes)).epsilon(1e-6));
}

TEST_CASE("write returns at once while the cache has room") {
    FaultBench bench(cached_site(4 * mib));
    bench.add(ModelCallKind::write, 0, 1, call_bytes);
    bench.run();
    CHECK(bench.last_end() == 0);
    // A read of the same bytes waits until the drives have them.
    bench.add(ModelCallKind::read, 0, 1, call_bytes, true, "f0");
    bench.remaining_calls[0] = 0;
    bench.run();
    const double own_drive = static_cast<double>(call_bytes) / (rate / 8);
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(partial_write_s(call_bytes) + own_drive).epsilon(1e-6));
}

TEST_CASE("write-through: later writes wait for the drives") {
    FaultBench bench(cached_site(64 * mib));
    bench.add(ModelCallKind::write, 0, 1, call_bytes);
    bench.run();
    bench.begin("write-through rc");
    CHECK(bench.machine.get_monitoring_data().media[0].written_bytes == call_bytes);
    bench.remaining_calls[0] = 1;
    bench.run();
    CHECK(to_seconds(bench.last_end()) == doctest::Approx(2 * partial_write_s(call_bytes)).epsilon(1e-6));
    bench.end("write-through rc");
    const Time before = bench.machine.now();
    bench.remaining_calls[0] = 1;
    bench.run();
    CHECK(bench.last_end() == before);
    CHECK(rejection(raid_site(rate), "write-through rc").find("no controller \"rc\" with a write cache") !=
          std::string::npos);
}

TEST_CASE("write cache comes from the controller of the RAID group") {
    nlohmann::json system = nlohmann::json::parse(R"({"schema": "sonde-system-resolved/2", "id": "s",
        "nodes": [{"id": "n", "role": "compute"}], "servers": [{"id": "oss"}],
        "drives": [{"id": "d0", "kind": "ssd", "capacity": 1e12, "rate": 1e9},
                   {"id": "d1", "kind": "ssd", "capacity": 1e12, "rate": 1e9}],
        "controllers": [{"id": "rc", "cache": 1e9, "write_cache": true}],
        "raid_groups": [{"id": "g", "level": "5", "data": 1, "parity": 1, "segment": 131072, "drives": ["d0", "d1"],
                         "controller": "rc"}],
        "targets": [{"id": "t", "kind": "ost", "file_system": "fs", "index": 0, "server": "oss", "on": "g"}],
        "file_systems": [{"id": "fs", "kind": "lustre"}],
        "mounts": [{"id": "m", "file_system": "fs", "on": ["n"]}]})");
    const SystemModel site = read_system_model(system.dump(), "m");
    REQUIRE(site.write_caches.size() == 1);
    CHECK(site.write_caches[0].bytes == 1'000'000'000);
    CHECK(site.media[0].write_cache == 0);
    CHECK(site.media[0].drive_ids == std::vector<std::string>{"d0", "d1"});
    system["controllers"][0]["write_cache"] = false;
    CHECK(read_system_model(system.dump(), "m").write_caches.empty());
    system["controllers"][0] = {{"id", "rc"}, {"write_cache", true}};
    CHECK(read_system_model(system.dump(), "m").unused_members ==
          std::vector<std::string>{"the model does not use write_cache (without a size in cache) of controllers rc"});
}

}  // namespace
}  // namespace sonde::simulate
