// SPDX-License-Identifier: Apache-2.0
// From a resolved system to what the model needs: what cannot be simulated is refused with one sentence that says
// where.
#include "kernel/stations.hpp"
#include "kernel/time.hpp"
#include "system/site.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// A node, a server and a target of 100 MB/s.
json small_system() {
    return json::parse(R"({"schema": "sonde-system-resolved/1", "id": "small",
        "nodes": [{"id": "n1", "role": "compute", "memory": 1e9, "model": {"call_cost": 2e-6}}],
        "servers": [{"id": "s1", "model": {"request_cost": 1e-4}}],
        "drives": [{"id": "d1", "kind": "hdd", "capacity": 1e12, "rate": 1e8}],
        "file_systems": [{"id": "fs", "kind": "lustre", "stripe": {"size": 65536, "count": 2}}],
        "targets": [{"id": "t1", "kind": "ost", "file_system": "fs", "server": "s1", "rate": 1e8}],
        "mounts": [{"id": "m", "file_system": "fs", "on": ["n1"]}]})");
}

std::string refusal(const json& system) {
    try {
        read_site(system.dump(), "");
    } catch (const SiteError& error) {
        return error.what();
    }
    return "";
}

/// What is said when the member at that place has that value.
std::string refusal(const char* place, const json& value) {
    json system = small_system();
    system[json::json_pointer(place)] = value;
    return refusal(system);
}

}  // namespace

TEST_CASE("what a system says is what the model has, and its defaults where it says nothing") {
    const SiteModel site = read_site(small_system().dump(), "");
    CHECK(site.clients.front().call_cost == 2000);
    CHECK(site.clients.front().memory == 1'000'000'000);
    CHECK(site.clients.front().rpc_size == Defaults::rpc_size);
    CHECK(site.servers.front().request_cost == 100'000);
    CHECK(site.targets.front().rate.read == 1e8);
    CHECK(site.fs.stripe_size == 65536);
    CHECK(site.fs.stripe_count == 2);
}

TEST_CASE("a number that no machine has is refused with its part and its borders") {
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

TEST_CASE("parts that lie on themselves are refused, and not followed for ever") {
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

TEST_CASE("times that follow from rates and factors end at the longest, and are exact below it") {
    constexpr Time longest = 1'000'000'000'000'000'000;
    CHECK(time_of(longest_s) == longest);
    CHECK(time_of(2e-9) == 2);
    CHECK(time_of(2.4e-9) == 2);
    CHECK(time_of(2.6e-9) == 3);
    CHECK(time_of(1e300) == longest);
    CHECK(time_of(std::numeric_limits<double>::quiet_NaN()) == longest);
    CHECK(time_for(1e18, 1) == longest);
    CHECK(time_for(1e6, 1e9) == 1'000'000);
    CHECK(time_for(1e6, 0) == 0);
    CHECK(scaled(123'456'789'012'345, 1) == 123'456'789'012'345);
    CHECK(scaled(1000, 2.5) == 2500);
    CHECK(scaled(longest, 1e6) == longest);
    CHECK(later(5, 7) == 12);
    CHECK(later(never - 1, 1) == never);
    CHECK(later(never, longest) == never);
    Fifo line;
    for (int i = 0; i < 12; ++i) {
        CHECK(line.reserve(0, longest).end >= longest);
    }
    CHECK(line.free_at() == never);
    CHECK(line.busy() == never);
}

}  // namespace sonde::simulate
