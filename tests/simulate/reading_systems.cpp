// SPDX-License-Identifier: Apache-2.0
// Reading of resolved systems: values, defaults, and rejection of systems that cannot be simulated.
#include "kernel/stations.hpp"
#include "kernel/time.hpp"
#include "system/system_model_reader.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// A node, a server and a target of 100 MB/s.
json small_system() {
    return json::parse(R"({"schema": "sonde-system-resolved/2", "id": "small",
        "nodes": [{"id": "n1", "role": "compute", "memory": 1e9, "model": {"call_cost": 2e-6}}],
        "servers": [{"id": "s1", "model": {"request_cost": 1e-4}}],
        "drives": [{"id": "d1", "kind": "hdd", "capacity": 1e12, "rate": 1e8}],
        "file_systems": [{"id": "fs", "kind": "lustre", "stripe": {"size": 65536, "count": 2}}],
        "targets": [{"id": "t1", "kind": "ost", "file_system": "fs", "server": "s1", "rate": 1e8}],
        "mounts": [{"id": "m", "file_system": "fs", "on": ["n1"]}]})");
}

std::string refusal(const json& system) {
    try {
        read_system_model(system.dump(), "");
    } catch (const SystemModelError& error) {
        return error.what();
    }
    return "";
}

/// The error message for a system whose member at a JSON pointer has that value.
std::string refusal(const char* pointer, const json& value) {
    json system = small_system();
    system[json::json_pointer(pointer)] = value;
    return refusal(system);
}

}  // namespace

TEST_CASE("site has the system's values, or defaults where absent") {
    const SystemModel site = read_system_model(small_system().dump(), "");
    CHECK(site.clients.front().call_cost == 2000);
    CHECK(site.clients.front().memory_bytes == 1'000'000'000);
    CHECK(site.clients.front().rpc_size == Defaults::rpc_size);
    CHECK(site.servers.front().request_cost == 100'000);
    CHECK(site.targets.front().rate.read == 1e8);
    CHECK(site.file_system.stripe_size == 65536);
    CHECK(site.file_system.stripe_count == 2);
}

TEST_CASE("read-ahead of a Lustre client is that of its version") {
    const auto limits_are = [](const char* version, double memory_gib, std::uint64_t stream_mib,
                               std::uint64_t total_mib) {
        json system = small_system();
        system["nodes"][0]["memory"] = memory_gib * (1U << 30U);
        system["file_systems"][0]["version"] = version;
        const ClientDescription client = read_system_model(system.dump(), "").clients.front();
        CAPTURE(version);
        CHECK(client.read_ahead_bytes == stream_mib << 20U);
        CHECK(client.total_read_ahead_bytes == total_mib << 20U);
    };
    for (const char* version : {"", "1.8.9", "2.1.1", "2.13.57", "2", "lustre-2.15", "2x15", "2.x"}) {
        limits_are(version, 512, 40, 40);
    }
    for (const char* version : {"2.14", "2.15.3", "2.16", "3.0"}) {
        limits_are(version, 512, 256, 1024);
        limits_are(version, 16, 128, 512);
    }
    limits_are("2.15", 0, 40, 40);  // the memory is not stated
}

TEST_CASE("number outside of its limits is rejected with both limits") {
    CHECK(refusal(small_system()) == "");
    const std::string begin = "the resolved system cannot be simulated: ";
    CHECK(refusal("/nodes/0/model/call_cost", 1e300) ==
          begin + "call_cost of \"n1\" is 1e+300; it must be from 0 to 1e+09");
    CHECK(refusal("/nodes/0/model/call_cost", 1e9) == "");
    CHECK(refusal("/nodes/0/model/call_cost", -1e-9) ==
          begin + "call_cost of \"n1\" is -1e-09; it must be from 0 to 1e+09");
    CHECK(refusal("/servers/0/model/request_cost", 1.1e9) != "");
    CHECK(refusal("/targets/0/rate", 0.5) == begin + "rate of \"t1\" is 0.5; it must be from 1 to 1e+18");
    CHECK(refusal("/targets/0/rate", 1) == "");
    CHECK(refusal("/targets/0/rate", json{{"read", 1e8}, {"write", -1}}) ==
          begin + "write of \"t1\" is -1; it must be from 0 to 1e+18");
    CHECK(refusal("/nodes/0/memory", 2e18) == begin + "memory of \"n1\" is 2e+18; it must be from 0 to 1e+18");
    CHECK(refusal("/nodes/0/cores", 5e9) != "");
    CHECK(refusal("/nodes/0/model/rpc_size", 0) == begin + "rpc_size of \"n1\" is 0; it must be from 1 to 1e+18");
    CHECK(refusal("/nodes/0/model/rpcs_in_flight", 0) != "");
    CHECK(refusal("/file_systems/0/stripe/size", 0) != "");
    CHECK(refusal("/file_systems/0/stripe/count", -1) == "");
    CHECK(refusal("/file_systems/0/stripe/count", -2) != "");
}

TEST_CASE("parts in a circle are rejected") {
    json circle = small_system();
    circle["luns"] = json::parse(R"([{"id": "a", "on": "b"}, {"id": "b", "on": "a"}])");
    circle["targets"][0]["on"] = "a";
    CHECK(refusal(circle) == "the resolved system cannot be simulated: \"a\" lies on itself");
    circle["luns"].back().erase("on");
    CHECK(refusal(circle) == "");
    circle["luns"][0].erase("on");
    circle["luns"][1]["raid_group"] = "b";
    CHECK(refusal(circle) == "the resolved system cannot be simulated: \"b\" lies on itself");
}

TEST_CASE("computed times are exact up to longest_s, then clamped") {
    constexpr Time longest = 1'000'000'000'000'000'000;
    CHECK(seconds_to_time(longest_s) == longest);
    CHECK(seconds_to_time(2e-9) == 2);
    CHECK(seconds_to_time(2.4e-9) == 2);
    CHECK(seconds_to_time(2.6e-9) == 3);
    CHECK(seconds_to_time(1e300) == longest);
    CHECK(seconds_to_time(std::numeric_limits<double>::quiet_NaN()) == longest);
    CHECK(transfer_time(1e18, 1) == longest);
    CHECK(transfer_time(1e6, 1e9) == 1'000'000);
    CHECK(transfer_time(1e6, 0) == 0);
    CHECK(multiply_time(123'456'789'012'345, 1) == 123'456'789'012'345);
    CHECK(multiply_time(1000, 2.5) == 2500);
    CHECK(multiply_time(longest, 1e6) == longest);
    CHECK(add_time(5, 7) == 12);
    CHECK(add_time(no_time - 1, 1) == no_time);
    CHECK(add_time(no_time, longest) == no_time);
    SingleServerStation line;
    for (int i = 0; i < 12; ++i) {
        CHECK(line.reserve(0, longest).end >= longest);
    }
    CHECK(line.free_time() == no_time);
    CHECK(line.busy_time() == no_time);
}

}  // namespace sonde::simulate
