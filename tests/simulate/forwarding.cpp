// SPDX-License-Identifier: Apache-2.0
// Client software, forwarders and routers of a mount: times that can be computed by hand.
#include "small_site.hpp"
#include "system/system_model_reader.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <nlohmann/json.hpp>

namespace sonde::simulate {
namespace {

/// A site with one forwarder that limits nothing and takes 2 ms for a call on one of `threads` threads.
SystemModel forwarded_site(std::size_t clients, std::uint32_t threads) {
    SystemModel site = small_site(clients, clients, 100e6);
    site.forwarders = {add_link(site, "forwarder", 0)};
    site.forward_cost = seconds_to_time(2e-3);
    site.forward_threads = threads;
    return site;
}

ModelOperation whole_mebibyte(ModelCallKind call) {
    ModelOperation operation;
    operation.kind = call;
    operation.direct = true;
    operation.length = mib;
    return operation;
}

/// When each of the clients has made one call on a file of its own, the earliest first.
std::vector<Time> run_and_list_ends(SystemModel site, const ModelOperation& requested) {
    CompletionTimes completions;
    const std::size_t clients = site.clients.size();
    Machine machine(std::move(site), {1, 0}, completions);
    for (std::uint32_t i = 0; i < clients; ++i) {
        ModelOperation operation = requested;
        operation.stream = machine.begin_stream(i);
        operation.file = machine.get_file("f" + std::to_string(i));
        operation.tag = i;
        machine.resize_file(operation.file, requested.kind == ModelCallKind::read ? requested.length : 0);
        machine.submit(0, operation);
    }
    while (completions.times.size() < clients) {
        REQUIRE(machine.handle_next_event());
    }
    std::vector<Time> ends;
    for (const auto& [tag, at] : completions.times) {
        ends.push_back(at);
    }
    std::sort(ends.begin(), ends.end());
    return ends;
}

TEST_CASE("forwarded request takes forwarder time, no client cpu time") {
    for (const ModelCallKind call : {ModelCallKind::read, ModelCallKind::write}) {
        SystemModel site = forwarded_site(1, 1);
        CHECK(run_and_list_ends(site, whole_mebibyte(call)) ==
              std::vector<Time>{seconds_to_time(2e-3) + transfer_time(mib, 100e6)});
        CompletionTimes completions;
        Machine machine(site, {1, 0}, completions);
        ModelOperation cached;
        cached.kind = ModelCallKind::write;
        cached.length = 4096;
        cached.stream = machine.begin_stream(0);
        cached.file = machine.get_file("f");
        machine.submit(0, cached);
        REQUIRE(machine.handle_next_event());
        CHECK(completions.times.begin()->second == 0);
    }
}

TEST_CASE("calls wait for threads of their forwarder") {
    SystemModel narrow = forwarded_site(2, 1);
    narrow.file_system.stripe_count = 1;  // the second file is on the second target
    const Time moving = transfer_time(mib, 100e6);
    CHECK(run_and_list_ends(narrow, whole_mebibyte(ModelCallKind::write)) ==
          std::vector<Time>{seconds_to_time(2e-3) + moving, seconds_to_time(4e-3) + moving});
    SystemModel wide = forwarded_site(2, 2);
    wide.file_system.stripe_count = 1;
    CHECK(run_and_list_ends(wide, whole_mebibyte(ModelCallKind::write)) ==
          std::vector<Time>{seconds_to_time(2e-3) + moving, seconds_to_time(2e-3) + moving});
}

TEST_CASE("clients use forwarders in turn from different starts on") {
    // Four requests of 1 MiB on four targets: through two forwarders of 100 MB/s two each.
    SystemModel site = small_site(2, 8, 1e9);
    site.file_system.stripe_count = 4;
    site.forwarders = {add_link(site, "f1", 100e6), add_link(site, "f2", 100e6)};
    ModelOperation operation = whole_mebibyte(ModelCallKind::write);
    operation.length = 4 * mib;
    const Time forwarding = transfer_time(mib, 100e6), stored = transfer_time(mib, 1e9);
    CHECK(run_and_list_ends(site, operation).back() == 4 * forwarding + stored);  // both clients
    SystemModel alone = small_site(1, 4, 1e9);
    alone.forwarders = {add_link(alone, "f1", 100e6), add_link(alone, "f2", 100e6)};
    CHECK(run_and_list_ends(alone, operation) == std::vector<Time>{2 * forwarding + stored});
    // One request of each of two clients: a forwarder each.
    site.file_system.stripe_count = 1;
    CHECK(run_and_list_ends(site, whole_mebibyte(ModelCallKind::write)) ==
          std::vector<Time>{forwarding + stored, forwarding + stored});
}

TEST_CASE("metadata operations are forwarded") {
    ModelOperation create;
    create.kind = ModelCallKind::create;
    CHECK(run_and_list_ends(forwarded_site(1, 1), create) == std::vector<Time>{seconds_to_time(3e-3)});
}

TEST_CASE("creating a file with content delays only its caller") {
    SystemModel site = small_site(2, 2, 100e6);
    site.data_cost = seconds_to_time(5e-3);
    site.size_cost_s = 1e-3;
    ModelOperation create;
    create.kind = ModelCallKind::create;
    CHECK(run_and_list_ends(site, create) == std::vector<Time>{seconds_to_time(1e-3), seconds_to_time(2e-3)});
    create.length = 2048;
    CHECK(run_and_list_ends(site, create) == std::vector<Time>{seconds_to_time(8e-3), seconds_to_time(9e-3)});
}

TEST_CASE("mount limits the requests in flight of a stream") {
    for (const ModelCallKind call : {ModelCallKind::read, ModelCallKind::write}) {
        SystemModel site = small_site(1, 2, 100e6);
        site.clients[0].link = add_link(site, "adapter", 0, seconds_to_time(10e-3));
        site.file_system.stripe_start = 0;
        ModelOperation operation = whole_mebibyte(call);
        operation.length = 8 * mib;
        const Time moving = transfer_time(mib, 100e6);
        // All at once: four on each target, one after the other. Two under way: one on each, four times.
        CHECK(run_and_list_ends(site, operation) == std::vector<Time>{seconds_to_time(20e-3) + 4 * moving});
        site.max_reads_in_flight = call == ModelCallKind::read ? 2 : 0;
        site.max_writes_in_flight = call == ModelCallKind::write ? 2 : 0;
        CHECK(run_and_list_ends(site, operation) == std::vector<Time>{4 * (seconds_to_time(20e-3) + moving)});
        // Of the other direction: no limit.
        std::swap(site.max_reads_in_flight, site.max_writes_in_flight);
        CHECK(run_and_list_ends(site, operation) == std::vector<Time>{seconds_to_time(20e-3) + 4 * moving});
    }
}

TEST_CASE("requests of an ended stream count for its successor") {
    SystemModel site = small_site(1, 1, 100e6);
    site.max_writes_in_flight = 1;
    CompletionTimes completions;
    Machine machine(site, {1, 0}, completions);
    ModelOperation write;
    write.kind = ModelCallKind::write;
    write.length = 3 * mib;
    write.stream = machine.begin_stream(0);
    write.file = machine.get_file("f");
    machine.submit(0, write);
    REQUIRE(machine.handle_next_event());
    machine.end_stream(write.stream);
    ModelOperation last = whole_mebibyte(ModelCallKind::write);
    last.stream = machine.begin_stream(0);
    REQUIRE(last.stream == write.stream);
    last.file = write.file;
    last.tag = 1;
    machine.submit(0, last);
    while (completions.times.size() < 2) {
        REQUIRE(machine.handle_next_event());
    }
    CHECK(completions.times[1] == 4 * transfer_time(mib, 100e6));
}

/// A compute node, a router that forwards for it and is itself the client of another mount, and a server.
nlohmann::json routed_system() {
    return nlohmann::json::parse(R"({"schema": "sonde-system-resolved/2", "id": "routed",
        "networks": [{"id": "fabric", "rate": 10e9}, {"id": "storage", "rate": 7e9}],
        "nodes": [{"id": "n1", "role": "compute", "interfaces": [{"network": "fabric"}]}],
        "routers": [{"id": "r1", "rate": 4e9, "interfaces": [{"network": "fabric"}, {"network": "storage"}]}],
        "servers": [{"id": "s1", "interfaces": [{"network": "storage"}]}],
        "file_systems": [{"id": "fs", "kind": "gpfs"}],
        "targets": [{"id": "t1", "kind": "nsd", "file_system": "fs", "server": "s1", "rate": 8e9}],
        "mounts": [
          {"id": "native", "file_system": "fs", "on": ["n1"],
           "model": {"client_read_rate": 3e9, "client_write_rate": 2e9, "reads_in_flight": 8, "data_cost": 6e-4}},
          {"id": "dvs", "file_system": "fs", "on": ["n1"], "via": ["r1"], "through": "dvs",
           "model": {"forward_cost": 2e-3, "forward_threads": 64, "forward_rate": 5.5e9}},
          {"id": "inside", "file_system": "fs", "on": ["r1"]}]})");
}

const LinkDescription* link_of(const SystemModel& site, int index) {
    return index < 0 ? nullptr : &site.links[static_cast<std::size_t>(index)];
}

TEST_CASE("limits of client software are read from the mount") {
    const SystemModel site = read_system_model(routed_system().dump(), "native");
    const LinkDescription* software = link_of(site, site.clients.front().software_link);
    REQUIRE(software != nullptr);
    CHECK(software->rate.read == 3e9);
    CHECK(software->rate.write == 2e9);
    CHECK(site.max_reads_in_flight == 8);
    CHECK(site.max_writes_in_flight == 0);
    CHECK(site.data_cost == seconds_to_time(600e-6));
    REQUIRE(site.routers.size() == 1);
    CHECK(link_of(site, site.routers.front())->rate.read == 4e9);
}

TEST_CASE("forwarding router is passed once, at its forward rate") {
    const SystemModel site = read_system_model(routed_system().dump(), "dvs");
    CHECK(site.routers.empty());
    REQUIRE(site.forwarders.size() == 1);
    CHECK(link_of(site, site.forwarders.front())->rate.read == 5.5e9);
    CHECK(site.forward_threads == 64);
    nlohmann::json silent = routed_system();
    silent["mounts"][1]["model"].erase("forward_rate");
    const SystemModel by_interface = read_system_model(silent.dump(), "dvs");
    CHECK(link_of(by_interface, by_interface.forwarders.front())->rate.read == 7e9);
}

TEST_CASE("forwarder on both networks needs no router") {
    nlohmann::json system = routed_system();
    system.erase("routers");
    system["mounts"].erase(2);
    system["mounts"][1]["via"] = {"gateway"};
    system["servers"].push_back(
        {{"id", "gateway"}, {"interfaces", {{{"network", "fabric"}}, {{"network", "storage"}}}}});
    const SystemModel site = read_system_model(system.dump(), "dvs");
    CHECK(site.routers.empty());
    REQUIRE(site.forwarders.size() == 1);
    CHECK(link_of(site, site.forwarders.front())->id == "gateway");
    CHECK_THROWS_AS(read_system_model(system.dump(), "native"), SystemModelError);
}

TEST_CASE("data servers with metadata costs serve metadata") {
    nlohmann::json system = routed_system();
    CHECK(read_system_model(system.dump(), "native").servers.back().id == "fs-names");  // with the model's own costs
    system["servers"][0]["model"] = {{"create_cost", 3e-4}, {"threads", 32}};
    const SystemModel site = read_system_model(system.dump(), "native");
    REQUIRE(site.metadata_servers == std::vector<int>{0});
    CHECK(site.servers[0].create == seconds_to_time(3e-4));
    CHECK(site.servers[0].threads == 32);
    CHECK(std::none_of(site.assumptions.begin(), site.assumptions.end(), [](const std::string& assumption) {
        return assumption.find("operations on names") != std::string::npos;
    }));
}

TEST_CASE("router with the mount is a client") {
    const SystemModel site = read_system_model(routed_system().dump(), "inside");
    REQUIRE(site.clients.size() == 1);
    CHECK(site.clients.front().id == "r1");
    CHECK(!site.clients.front().uses_routers);
}

}  // namespace
}  // namespace sonde::simulate
