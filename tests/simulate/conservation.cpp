// SPDX-License-Identifier: Apache-2.0
// Conservation of bytes: all bytes of clients reach the targets and pass each part between them once, on random
// machines and in both directions.
#include "kernel/random.hpp"
#include "small_site.hpp"

#include <doctest/doctest.h>
#include <map>

namespace sonde::simulate {
namespace {

SystemModel random_site(Random& chance) {
    SystemModel site =
        small_site(1 + chance.integer_below(4), 1 + chance.integer_below(7), 20e6 + 400e6 * chance.uniform());
    site.file_system.stripe_size = (1 + chance.integer_below(32)) * 65536;
    site.file_system.stripe_count = static_cast<std::int64_t>(chance.integer_below(site.targets.size() + 1));
    const auto link = [&](const std::string& id) {
        const int index =
            add_link(site, id, 1e7 + 1e9 * chance.uniform(), static_cast<Time>(chance.integer_below(50'000)));
        site.links[static_cast<std::size_t>(index)].half_duplex = chance.integer_below(2) == 0;
        return index;
    };
    for (std::size_t i = 0; i < 2; ++i) {
        ServerDescription server;
        server.id = "oss" + std::to_string(i);
        server.link = link(server.id);
        server.threads = static_cast<std::uint32_t>(chance.integer_below(4));
        server.request_cost = static_cast<Time>(chance.integer_below(100'000));
        site.servers.push_back(server);
    }
    for (std::size_t i = 0; i < site.targets.size(); ++i) {
        site.targets[i].server = static_cast<int>(1 + i % 2);
        site.targets[i].noise = 0.4 * chance.uniform();
    }
    for (std::size_t i = chance.integer_below(4); i > 0; --i) {
        site.routers.push_back(link("router" + std::to_string(i)));
    }
    for (std::size_t i = chance.integer_below(3); i > 0; --i) {
        site.forwarders.push_back(link("forwarder" + std::to_string(i)));
    }
    for (ClientDescription& client : site.clients) {
        client.link = link(client.id);
        client.uses_routers = !site.routers.empty();
        client.rpc_size = (1 + chance.integer_below(16)) * 65536;
        client.rpcs_in_flight = static_cast<std::uint32_t>(1 + chance.integer_below(8));
        client.dirty_limit_bytes = chance.integer_below(3) * (8 * mib);
        client.read_ahead_bytes = chance.integer_below(2) * (4 * mib);
        client.page_cache_bytes = chance.integer_below(2) * (64 * mib);
    }
    return site;
}

struct Sums {
    std::uint64_t clients = 0, forwarders = 0, routers = 0, servers = 0, targets = 0;
};

Sums sum_flows(const Machine& machine, bool writing) {
    Sums sums;
    for (const Machine::Flow& flow : machine.flows()) {
        const std::uint64_t bytes = writing ? flow.written : flow.read;
        std::uint64_t& of = flow.part[0] == 'c'   ? sums.clients
                            : flow.part[0] == 'f' ? sums.forwarders
                            : flow.part[0] == 'r' ? sums.routers
                            : flow.part[0] == 'o' ? sums.servers
                                                  : sums.targets;
        of += bytes;
    }
    return sums;
}

TEST_CASE("every transferred byte passes each part of its path once") {
    Random chance(2026);
    for (int round = 0; round < 120; ++round) {
        const SystemModel site = random_site(chance);
        CompletionTimes completions;
        Machine machine(site, {static_cast<std::uint64_t>(round), 0}, completions);
        std::uint64_t written = 0, requested = 0, tag = 0;
        for (std::uint32_t i = 0; i < 30; ++i) {
            const bool writing = chance.integer_below(2) == 0;
            ModelOperation operation;
            operation.kind = writing ? ModelCallKind::write : ModelCallKind::read;
            operation.direct = chance.integer_below(2) == 0;
            operation.length = 1 + chance.integer_below(6 * mib);
            operation.stream = machine.begin_stream(static_cast<std::uint32_t>(i % site.clients.size()));
            // Files that are read are read by one stream each, so that what is requested for is what is moved.
            operation.file =
                machine.get_file(writing ? "w" + std::to_string(chance.integer_below(4)) : "r" + std::to_string(i));
            operation.offset = chance.integer_below(500) * 4096;
            operation.tag = ++tag;
            (writing ? written : requested) += operation.length;
            if (!writing) {
                machine.resize_file(operation.file, operation.offset + operation.length);
            }
            machine.submit(static_cast<Time>(chance.integer_below(20'000'000)), operation);
            if (writing) {
                ModelOperation sync = operation;
                sync.kind = ModelCallKind::fsync;
                sync.tag = ++tag;
                machine.submit(60'000'000'000, sync);
            }
        }
        while (completions.times.size() < tag) {
            REQUIRE(machine.handle_next_event());
        }
        for (const bool writing : {true, false}) {
            const Sums sums = sum_flows(machine, writing);
            const std::uint64_t moved = writing ? written : requested;
            REQUIRE(sums.targets == moved);
            REQUIRE(sums.clients == moved);
            REQUIRE(sums.servers == moved);
            REQUIRE(sums.routers == (site.routers.empty() ? 0 : moved));
            REQUIRE(sums.forwarders == (site.forwarders.empty() ? 0 : moved));
        }
        // And the nodes' own counters: what their tasks requested for, once.
        std::uint64_t of_nodes = 0;
        for (const NodeCounters& node : machine.get_monitoring_data().nodes) {
            of_nodes += node.write_bytes.sum + node.read_bytes.sum;
        }
        REQUIRE(of_nodes == written + requested);
    }
}

}  // namespace
}  // namespace sonde::simulate
