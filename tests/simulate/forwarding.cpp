// SPDX-License-Identifier: Apache-2.0
// What a mount says of its clients and of who makes their calls: times that can be worked out by hand.
#include "small_site.hpp"
#include "system/site.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <nlohmann/json.hpp>

namespace sonde::simulate {
namespace {

/// A site with one forwarder that limits nothing and takes 2 ms for a call on one of `threads` threads.
SiteModel forwarded_site(std::size_t clients, std::uint32_t threads) {
    SiteModel site = small_site(clients, clients, 100e6);
    site.forwarders = {add_link(site, "forwarder", 0)};
    site.forward_cost = time_of(2e-3);
    site.forward_threads = threads;
    return site;
}

Operation whole_mebibyte(Call call) {
    Operation operation;
    operation.call = call;
    operation.direct = true;
    operation.length = mib;
    return operation;
}

/// When each of the clients has made one call on a file of its own, the earliest first.
std::vector<Time> ends_of(SiteModel site, const Operation& asked) {
    Heard heard;
    const std::size_t clients = site.clients.size();
    Machine machine(std::move(site), {1, 0}, heard);
    for (std::uint32_t i = 0; i < clients; ++i) {
        Operation operation = asked;
        operation.stream = machine.stream(i);
        operation.file = machine.file("f" + std::to_string(i));
        operation.tag = i;
        machine.resize(operation.file, asked.call == Call::read ? asked.length : 0);
        machine.submit(0, operation);
    }
    while (heard.at.size() < clients) {
        REQUIRE(machine.step());
    }
    std::vector<Time> ends;
    for (const auto& [tag, at] : heard.at) {
        ends.push_back(at);
    }
    std::sort(ends.begin(), ends.end());
    return ends;
}

TEST_CASE("a forwarded request costs its time on a thread of the forwarder, and no time of the client's processor") {
    for (const Call call : {Call::read, Call::write}) {
        SiteModel site = forwarded_site(1, 1);
        CHECK(ends_of(site, whole_mebibyte(call)) == std::vector<Time>{time_of(2e-3) + time_for(mib, 100e6)});
        Heard heard;
        Machine machine(site, {1, 0}, heard);
        Operation cached;
        cached.call = Call::write;
        cached.length = 4096;
        cached.stream = machine.stream(0);
        cached.file = machine.file("f");
        machine.submit(0, cached);
        REQUIRE(machine.step());
        CHECK(heard.at.begin()->second == 0);
    }
}

TEST_CASE("calls wait for the threads of their forwarder") {
    SiteModel narrow = forwarded_site(2, 1);
    narrow.fs.stripe_count = 1;  // the second file is on the second target
    const Time moving = time_for(mib, 100e6);
    CHECK(ends_of(narrow, whole_mebibyte(Call::write)) ==
          std::vector<Time>{time_of(2e-3) + moving, time_of(4e-3) + moving});
    SiteModel wide = forwarded_site(2, 2);
    wide.fs.stripe_count = 1;
    CHECK(ends_of(wide, whole_mebibyte(Call::write)) ==
          std::vector<Time>{time_of(2e-3) + moving, time_of(2e-3) + moving});
}

TEST_CASE("a client deals its calls to all forwarders in turn, and clients do not begin at the same one") {
    // Four requests of 1 MiB on four targets: through two forwarders of 100 MB/s two each.
    SiteModel site = small_site(2, 8, 1e9);
    site.fs.stripe_count = 4;
    site.forwarders = {add_link(site, "f1", 100e6), add_link(site, "f2", 100e6)};
    Operation operation = whole_mebibyte(Call::write);
    operation.length = 4 * mib;
    const Time one = time_for(mib, 100e6), stored = time_for(mib, 1e9);
    CHECK(ends_of(site, operation).back() == 4 * one + stored);  // both clients
    SiteModel alone = small_site(1, 4, 1e9);
    alone.forwarders = {add_link(alone, "f1", 100e6), add_link(alone, "f2", 100e6)};
    CHECK(ends_of(alone, operation) == std::vector<Time>{2 * one + stored});
    // One request of each of two clients: a forwarder each.
    site.fs.stripe_count = 1;
    CHECK(ends_of(site, whole_mebibyte(Call::write)) == std::vector<Time>{one + stored, one + stored});
}

TEST_CASE("operations on names are forwarded, too") {
    Operation create;
    create.call = Call::create;
    CHECK(ends_of(forwarded_site(1, 1), create) == std::vector<Time>{time_of(3e-3)});
}

TEST_CASE("making a file that holds something takes longer without keeping the server from others") {
    SiteModel site = small_site(2, 2, 100e6);
    site.data_cost = time_of(5e-3);
    site.size_cost_s = 1e-3;
    Operation create;
    create.call = Call::create;
    CHECK(ends_of(site, create) == std::vector<Time>{time_of(1e-3), time_of(2e-3)});
    create.length = 2048;
    CHECK(ends_of(site, create) == std::vector<Time>{time_of(8e-3), time_of(9e-3)});
}

TEST_CASE("a stream has no more requests under way than its mount lets it have") {
    for (const Call call : {Call::read, Call::write}) {
        SiteModel site = small_site(1, 2, 100e6);
        site.clients[0].link = add_link(site, "adapter", 0, time_of(10e-3));
        site.fs.stripe_start = 0;
        Operation operation = whole_mebibyte(call);
        operation.length = 8 * mib;
        const Time moving = time_for(mib, 100e6);
        // All at once: four on each target, one after the other. Two under way: one on each, four times.
        CHECK(ends_of(site, operation) == std::vector<Time>{time_of(20e-3) + 4 * moving});
        site.reads_in_flight = call == Call::read ? 2 : 0;
        site.writes_in_flight = call == Call::write ? 2 : 0;
        CHECK(ends_of(site, operation) == std::vector<Time>{4 * (time_of(20e-3) + moving)});
        // Of the other direction: no limit.
        std::swap(site.reads_in_flight, site.writes_in_flight);
        CHECK(ends_of(site, operation) == std::vector<Time>{time_of(20e-3) + 4 * moving});
    }
}

TEST_CASE("what a stream has left under way counts for the next stream of its number") {
    SiteModel site = small_site(1, 1, 100e6);
    site.writes_in_flight = 1;
    Heard heard;
    Machine machine(site, {1, 0}, heard);
    Operation write;
    write.call = Call::write;
    write.length = 3 * mib;
    write.stream = machine.stream(0);
    write.file = machine.file("f");
    machine.submit(0, write);
    REQUIRE(machine.step());
    machine.end_stream(write.stream);
    Operation last = whole_mebibyte(Call::write);
    last.stream = machine.stream(0);
    REQUIRE(last.stream == write.stream);
    last.file = write.file;
    last.tag = 1;
    machine.submit(0, last);
    while (heard.at.size() < 2) {
        REQUIRE(machine.step());
    }
    CHECK(heard.at[1] == 4 * time_for(mib, 100e6));
}

/// Two clients, a router that is a client of one mount and forwards for another, and a server behind it.
nlohmann::json routed_system() {
    return nlohmann::json::parse(R"({"schema": "sonde-system-resolved/1", "id": "routed",
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

const LinkSite* link_of(const SiteModel& site, int index) {
    return index < 0 ? nullptr : &site.links[static_cast<std::size_t>(index)];
}

TEST_CASE("what a mount says of its clients is read") {
    const SiteModel site = read_site(routed_system().dump(), "native");
    const LinkSite* software = link_of(site, site.clients.front().software);
    REQUIRE(software != nullptr);
    CHECK(software->rate.read == 3e9);
    CHECK(software->rate.write == 2e9);
    CHECK(site.reads_in_flight == 8);
    CHECK(site.writes_in_flight == 0);
    CHECK(site.data_cost == time_of(600e-6));
    REQUIRE(site.routers.size() == 1);
    CHECK(link_of(site, site.routers.front())->rate.read == 4e9);
}

TEST_CASE("a router that forwards calls has its rate for calls, and no request passes it twice") {
    const SiteModel site = read_site(routed_system().dump(), "dvs");
    CHECK(site.routers.empty());
    REQUIRE(site.forwarders.size() == 1);
    CHECK(link_of(site, site.forwarders.front())->rate.read == 5.5e9);
    CHECK(site.forward_threads == 64);
    nlohmann::json silent = routed_system();
    silent["mounts"][1]["model"].erase("forward_rate");
    const SiteModel by_interface = read_site(silent.dump(), "dvs");
    CHECK(link_of(by_interface, by_interface.forwarders.front())->rate.read == 7e9);
}

TEST_CASE("servers of data that say what names cost them serve names where nobody else does") {
    nlohmann::json system = routed_system();
    CHECK(read_site(system.dump(), "native").servers.back().id == "fs-names");  // with the model's own costs
    system["servers"][0]["model"] = {{"create_cost", 3e-4}, {"threads", 32}};
    const SiteModel site = read_site(system.dump(), "native");
    REQUIRE(site.metadata_servers == std::vector<int>{0});
    CHECK(site.servers[0].create == time_of(3e-4));
    CHECK(site.servers[0].threads == 32);
    CHECK(std::none_of(site.assumptions.begin(), site.assumptions.end(),
                       [](const std::string& one) { return one.find("operations on names") != std::string::npos; }));
}

TEST_CASE("a router that has the mount is a client of it") {
    const SiteModel site = read_site(routed_system().dump(), "inside");
    REQUIRE(site.clients.size() == 1);
    CHECK(site.clients.front().id == "r1");
    CHECK(!site.clients.front().routed);
}

}  // namespace
}  // namespace sonde::simulate
