// SPDX-License-Identifier: Apache-2.0
// Numbers that a system file states change the times of the model by as much as they say.
#include "fault_bench.hpp"
#include "system/system_model_reader.hpp"

#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// Four targets on RAID groups of eight data drives of 500 MB/s, all behind one controller in one enclosure.
json enclosed_system() {
    json system = json::parse(R"({"schema": "sonde-system-resolved/2", "id": "s",
        "nodes": [{"id": "n", "role": "compute", "model": {"call_cost": 0}}],
        "servers": [{"id": "oss"}],
        "enclosures": [{"id": "box"}],
        "controllers": [{"id": "rc", "enclosure": "box"}],
        "file_systems": [{"id": "fs", "kind": "lustre", "stripe": {"size": 1048576, "count": 1}}],
        "mounts": [{"id": "m", "file_system": "fs", "on": ["n"]}]})");
    for (int i = 0; i < 4; ++i) {
        const std::string number = std::to_string(i);
        json drives = json::array();
        for (int k = 0; k < 10; ++k) {
            drives.push_back("d" + number + "-" + std::to_string(k));
            system["drives"].push_back(
                {{"id", drives.back()}, {"kind", "ssd"}, {"enclosure", "box"}, {"capacity", 1e12}, {"rate", 500e6}});
        }
        system["raid_groups"].push_back({{"id", "g" + number},
                                         {"level", "6"},
                                         {"data", 8},
                                         {"parity", 2},
                                         {"segment", 131072},
                                         {"drives", drives},
                                         {"controller", "rc"}});
        system["targets"].push_back({{"id", "t" + number},
                                     {"kind", "ost"},
                                     {"file_system", "fs"},
                                     {"index", i},
                                     {"server", "oss"},
                                     {"on", "g" + number}});
    }
    return system;
}

/// Bytes/s of 32 streams of direct calls of 1 MiB.
double rate_of(const json& system, ModelCallKind call) {
    FaultBench bench(read_system_model(system.dump(), "m"));
    for (int i = 0; i < 32; ++i) {
        bench.add(call, 0, 100);
    }
    bench.run();
    return 32.0 * 100 * mib / to_seconds(bench.last_end());
}

/// Direct calls per second of `streams` streams, each at random offsets of its file on one drive or RAID group.
double random_operations(SystemModel site, ModelCallKind call, int streams, std::uint64_t length) {
    site.file_system.stripe_size = std::uint64_t{1} << 40U;
    FaultBench bench(site);
    constexpr std::uint64_t calls = 2000;
    for (int i = 0; i < streams; ++i) {
        bench.add(call, 0, calls, length);
        bench.machine.resize_file(bench.next_operations.back().file, std::uint64_t{1} << 36U);
        bench.machine.allocate_blocks(bench.next_operations.back().file, std::uint64_t{1} << 36U);
        bench.seeds.push_back(static_cast<std::uint64_t>(i) + 1);
    }
    bench.run();
    return static_cast<double>(streams) * calls / to_seconds(bench.last_end());
}

TEST_CASE("controller and enclosure limit targets of servers") {
    const json fast = enclosed_system();
    CHECK(rate_of(fast, ModelCallKind::read) == doctest::Approx(4 * 8 * 500e6).epsilon(0.02));
    json system = fast;
    system["controllers"][0]["rate"] = 2e9;
    CHECK(rate_of(system, ModelCallKind::read) == doctest::Approx(2e9).epsilon(0.01));
    CHECK(rate_of(system, ModelCallKind::write) == doctest::Approx(2e9).epsilon(0.01));
    system["controllers"][0]["model"] = {{"parity_rate", 1e9}};  // of data that is written
    CHECK(rate_of(system, ModelCallKind::write) == doctest::Approx(1e9).epsilon(0.01));
    CHECK(rate_of(system, ModelCallKind::read) == doctest::Approx(2e9).epsilon(0.01));
    system = fast;
    system["enclosures"][0]["rate"] = 1e9;
    CHECK(rate_of(system, ModelCallKind::read) == doctest::Approx(1e9).epsilon(0.01));
    CHECK(rate_of(system, ModelCallKind::write) == doctest::Approx(0.8e9).epsilon(0.01));  // 8 of 10 bytes are data
}

/// One drive of 500 MB/s without a RAID on the node.
SystemModel drive_site(double operations, double latency_s) {
    json system = json::parse(R"({"schema": "sonde-system-resolved/2", "id": "s",
        "nodes": [{"id": "n", "role": "compute", "model": {"call_cost": 0}}],
        "drives": [{"id": "d", "kind": "ssd", "capacity": 1e12, "rate": 5e8}],
        "file_systems": [{"id": "fs", "kind": "xfs", "device": "d"}],
        "mounts": [{"id": "m", "file_system": "fs", "on": ["n"]}]})");
    system["drives"][0]["operations"] = operations;
    system["drives"][0]["latency"] = latency_s;
    return read_system_model(system.dump(), "m");
}

TEST_CASE("drive has its stated latency and operations per second") {
    const SystemModel site = drive_site(90e3, 100e-6);
    CHECK(random_operations(site, ModelCallKind::read, 1, 4096) == doctest::Approx(10e3).epsilon(0.001));
    CHECK(random_operations(site, ModelCallKind::read, 4, 4096) == doctest::Approx(40e3).epsilon(0.01));
    CHECK(random_operations(site, ModelCallKind::read, 32, 4096) == doctest::Approx(90e3).epsilon(0.01));
    CHECK(random_operations(site, ModelCallKind::read, 8, mib) * mib == doctest::Approx(500e6).epsilon(0.01));
}

/// A RAID group of eight data drives of 100 MB/s.
SystemModel parity_site(std::uint32_t parity) {
    SystemModel site = raid_site(800e6);
    site.media[0].parity_drives = parity;
    site.media[0].drive_count = 8 + parity;
    return site;
}

TEST_CASE("small writes of parity RAID cost four or six transfers") {
    constexpr std::uint64_t length = 4096;
    for (const std::uint32_t parity : {1U, 2U}) {
        const double transfers = 2.0 * (1 + parity);
        const double drives = 8 + parity;
        CHECK(random_operations(parity_site(parity), ModelCallKind::write, 256, length) * length ==
              doctest::Approx(drives * 100e6 / transfers).epsilon(0.04));
        // Small reads use all drives.
        CHECK(random_operations(parity_site(parity), ModelCallKind::read, 256, length) * length ==
              doctest::Approx(drives * 100e6).epsilon(0.04));
    }
}

/// A client and a server on networks, with two routers of 1 GB/s between them.
json two_network_system() {
    return json::parse(R"({"schema": "sonde-system-resolved/2", "id": "s",
        "networks": [{"id": "a", "rate": 1e11, "latency": 5e-5}, {"id": "b", "rate": 1e11, "latency": 2e-5}],
        "nodes": [{"id": "n", "role": "compute", "model": {"call_cost": 0}, "interfaces": [{"network": "a"}]}],
        "servers": [{"id": "oss", "interfaces": [{"network": "b"}]}],
        "routers": [{"id": "r1", "rate": 1e9, "interfaces": [{"network": "a"}, {"network": "b"}]},
                    {"id": "r2", "rate": 1e9, "interfaces": [{"network": "a"}, {"network": "b"}]}],
        "file_systems": [{"id": "fs", "kind": "lustre"}],
        "targets": [{"id": "t", "kind": "ost", "file_system": "fs", "server": "oss", "rate": 1e11}],
        "mounts": [{"id": "m", "file_system": "fs", "on": ["n"]}]})");
}

/// Time of one direct read of one byte.
Time one_read(const json& system) {
    FaultBench bench(read_system_model(system.dump(), "m"));
    bench.add(ModelCallKind::read, 0, 1, 1);
    bench.run();
    return bench.last_end();
}

TEST_CASE("message takes the latency of each network once") {
    json system = two_network_system();
    CHECK(to_seconds(one_read(system)) == doctest::Approx(2 * (50e-6 + 20e-6)).epsilon(0.001));
    system["servers"][0]["interfaces"][0]["network"] = "a";
    CHECK(to_seconds(one_read(system)) == doctest::Approx(2 * 50e-6).epsilon(0.001));
}

TEST_CASE("standby router carries load only after all active are lost") {
    json system = two_network_system();
    CHECK(rate_of(system, ModelCallKind::read) == doctest::Approx(2e9).epsilon(0.02));
    system["routers"][1]["priority"] = 1;
    CHECK(rate_of(system, ModelCallKind::read) == doctest::Approx(1e9).epsilon(0.02));
    FaultBench bench(read_system_model(system.dump(), "m"));
    bench.add(ModelCallKind::read, 0, 100);
    bench.begin("router-lost r1");
    bench.run();
    CHECK(bench.bytes_through("r1") == 0);
    CHECK(bench.bytes_through("r2") == 100 * mib);
}

TEST_CASE("lustre uses lnet routers, other file systems ip routers") {
    json system = two_network_system();
    system["routers"][0]["protocol"] = "lnet";
    system["routers"][1]["protocol"] = "ip";
    CHECK(read_system_model(system.dump(), "m").routers.size() == 1);
    CHECK(rate_of(system, ModelCallKind::read) == doctest::Approx(1e9).epsilon(0.02));
    system["routers"][0]["protocol"] = "ip";
    CHECK_THROWS_WITH_AS(read_system_model(system.dump(), "m"), doctest::Contains("protocol \"lnet\""),
                         SystemModelError);
    system["file_systems"][0]["kind"] = "gpfs";
    CHECK(read_system_model(system.dump(), "m").routers.size() == 2);
}

/// Records the errors of calls by tag.
struct CallErrors : Listener {
    std::map<std::uint64_t, int> errors;
    void on_completion(const CompletedOperation& completed) override { errors[completed.tag] = completed.error; }
    void on_alarm(Time, std::uint64_t) override {}
};

/// Errors of 12 writes of a MiB each, over all targets of a site.
std::vector<int> collect_write_errnos(const SystemModel& site, bool direct) {
    CallErrors calls;
    Machine machine(site, {1, 0}, calls);
    ModelOperation operation;
    operation.kind = ModelCallKind::write;
    operation.direct = direct;
    operation.length = mib;
    operation.stream = machine.begin_stream(0);
    operation.file = machine.get_file("f");
    std::vector<int> errors;
    for (; operation.tag < 12; ++operation.tag, operation.offset += mib) {
        machine.submit(machine.now(), operation);
        while (!calls.errors.contains(operation.tag)) {
            REQUIRE(machine.handle_next_event());
        }
        errors.push_back(calls.errors[operation.tag]);
    }
    return errors;
}

TEST_CASE("writes beyond the capacity of a target fail with ENOSPC") {
    SystemModel site = small_site(1, 2, 1e9);
    site.targets[0].capacity_bytes = 5 * mib;
    site.targets[1].capacity_bytes = 3 * mib;  // full with the eighth MiB
    site.file_system.stripe_start = 0;
    for (const bool direct : {false, true}) {
        const std::vector<int> errors = collect_write_errnos(site, direct);
        CHECK(std::count(errors.begin(), errors.end(), 0) == 7);
        CHECK(std::vector<int>(errors.begin() + 7, errors.end()) == std::vector<int>(5, ENOSPC));
    }
    site.file_system.used_share = 0.5;  // 2.5 and 1.5 MiB are free: two and one
    const std::vector<int> half = collect_write_errnos(site, true);
    CHECK(std::count(half.begin(), half.end(), 0) == 3);
    site.targets[0].capacity_bytes = site.targets[1].capacity_bytes = 0;  // unknown
    const std::vector<int> unknown = collect_write_errnos(site, true);
    CHECK(std::count(unknown.begin(), unknown.end(), 0) == 12);
}

TEST_CASE("local storage has the capacity of its data drives") {
    json system = enclosed_system();
    system["file_systems"][0] = json::parse(R"({"id": "fs", "kind": "xfs", "device": "g0"})");
    system["targets"] = json::array();
    CHECK(read_system_model(system.dump(), "m").targets[0].capacity_bytes == 8'000'000'000'000);
    system["raid_groups"][0]["usable"] = 7e12;
    CHECK(read_system_model(system.dump(), "m").targets[0].capacity_bytes == 7'000'000'000'000);
    system["luns"] = json::parse(R"([{"id": "lun", "raid_group": "g0", "size": 8e8}])");
    system["file_systems"][0]["device"] = "lun";
    CHECK(read_system_model(system.dump(), "m").targets[0].capacity_bytes == 800'000'000);
}

TEST_CASE("removed and shortened files give their space back") {
    SystemModel site = small_site(1, 1, 1e9);
    site.targets[0].capacity_bytes = 4 * mib;
    CallErrors calls;
    Machine machine(site, {1, 0}, calls);
    const auto write_error = [&](const char* name, std::uint64_t length) {
        ModelOperation operation;
        operation.kind = ModelCallKind::write;
        operation.direct = true;
        operation.length = length;
        operation.stream = machine.begin_stream(0);
        operation.file = machine.get_file(name);
        calls.errors.clear();
        machine.submit(machine.now(), operation);
        while (calls.errors.empty()) {
            REQUIRE(machine.handle_next_event());
        }
        machine.end_stream(operation.stream);
        return calls.errors.begin()->second;
    };
    CHECK(write_error("a", 3 * mib) == 0);
    CHECK(write_error("b", 2 * mib) == ENOSPC);
    machine.resize_file(machine.get_file("a"), mib);
    CHECK(write_error("b", 2 * mib) == 0);
    CHECK(write_error("c", 2 * mib) == ENOSPC);
    machine.remove_file("b");
    CHECK(write_error("c", 2 * mib) == 0);
}

TEST_CASE("numbers that the model does not use are reported") {
    json system = two_network_system();
    CHECK(read_system_model(system.dump(), "m").unused_members.empty());
    system["networks"][0]["bisection"] = 1e12;
    system["networks"][1]["model"] = {{"congestion", 0.1}};
    system["controllers"] = json::parse(R"([{"id": "c1", "cache": 1e9}, {"id": "c2", "cache": 1e9}])");
    CHECK(read_system_model(system.dump(), "m").unused_members ==
          std::vector<std::string>{"the model does not use bisection of networks a",
                                   "the model does not use cache of controllers c1 and 1 more",
                                   "the model does not use model.congestion of networks b"});
}

TEST_CASE("contention: each further file takes its share of the rate") {
    SystemModel site = small_site(1, 1, 100e6);
    site.targets[0].contention = 0.1;
    const auto seconds = [&site](int files, int streams_of_each) {
        FaultBench bench(site);
        for (int file = 0; file < files; ++file) {
            for (int i = 0; i < streams_of_each; ++i) {
                bench.add(ModelCallKind::write, 0, 1000, mib, true, "f" + std::to_string(file));
            }
        }
        bench.run();
        return to_seconds(bench.last_end()) / (files * streams_of_each);
    };
    const double alone = 1000 * mib / 100e6;
    CHECK(seconds(1, 1) == doctest::Approx(alone).epsilon(1e-6));
    CHECK(seconds(1, 4) == doctest::Approx(alone).epsilon(1e-6));
    CHECK(seconds(4, 1) == doctest::Approx(alone * 1.3).epsilon(0.002));
}

TEST_CASE("bottleneck is the part that is busy all the time") {
    json system = enclosed_system();
    system["controllers"][0]["rate"] = 2e9;
    FaultBench bench(read_system_model(system.dump(), "m"));
    for (int i = 0; i < 32; ++i) {
        bench.add(ModelCallKind::read, 0, 100);
    }
    const std::vector<PartLoad> before = bench.machine.part_loads();
    bench.run();
    const Bottleneck busiest = find_bottleneck(before, bench.machine.part_loads(), to_seconds(bench.last_end()));
    CHECK(busiest.part == "rc");
    CHECK(busiest.utilization > 0.98);
    CHECK(busiest.similar_count == 1);
}

}  // namespace
}  // namespace sonde::simulate
