// SPDX-License-Identifier: Apache-2.0
// Transfers over a small network on our model: when each is done. Reads what bench/second_opinion/run.py writes:
//   seed S noise CV | router RATE half|full | client RATE half|full | server RATE half|full | target SERVER RATE |
//   flow CLIENT TARGET BYTES w|r
// one a line; a rate is in bytes/s, and 0 is no limit. Prints the end of each flow in nanoseconds, then the events.
#include "model/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace sonde::simulate;

constexpr std::uint64_t message = 1U << 20U;

struct Flow {
    std::uint32_t client = 0, target = 0;
    std::uint64_t bytes = 0, left = 0;
    bool writing = true;
    Time end = 0;
};

struct Ends : Listener {
    std::vector<Flow> flows;
    std::size_t remaining = 0;
    void on_completion(const CompletedOperation& completed) override {
        Flow& flow = flows[completed.tag];
        flow.end = std::max(flow.end, completed.end);
        remaining -= --flow.left == 0 ? 1 : 0;
    }
    void on_alarm(Time, std::uint64_t) override {}
};

int link_of(SystemModel& site, const std::string& id, double rate, const std::string& duplex) {
    LinkDescription link;
    link.id = id;
    link.rate = {rate, rate};
    link.half_duplex = duplex == "half";
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

void read(SystemModel& site, Ends& ends, MachineOptions& options) {
    std::string word, duplex, direction;
    double rate = 0, noise = 0;
    while (std::cin >> word) {
        if (word == "seed") {
            std::cin >> options.seed >> word >> noise;
        } else if (word == "router") {
            std::cin >> rate >> duplex;
            site.routers = {link_of(site, "router", rate, duplex)};
        } else if (word == "client") {
            std::cin >> rate >> duplex;
            ClientDescription client;
            client.id = "c" + std::to_string(site.clients.size());
            client.rpc_size = message;
            client.rpcs_in_flight = 8;
            client.uses_routers = !site.routers.empty();
            client.link = link_of(site, client.id, rate, duplex);
            site.clients.push_back(client);
        } else if (word == "server") {
            std::cin >> rate >> duplex;
            ServerDescription server;
            server.id = "s" + std::to_string(site.servers.size());
            server.threads = 1;
            server.link = link_of(site, server.id, rate, duplex);
            site.servers.push_back(server);
        } else if (word == "target") {
            TargetDescription target;
            std::cin >> target.server >> rate;
            target.index_in_file_system = static_cast<std::uint32_t>(site.targets.size());
            target.id = "t" + std::to_string(target.index_in_file_system);
            target.rate = {rate, rate};
            target.noise = noise;
            site.targets.push_back(target);
        } else if (word == "flow") {
            Flow flow;
            std::cin >> flow.client >> flow.target >> flow.bytes >> direction;
            flow.writing = direction == "w";
            ends.flows.push_back(flow);
        }
    }
    site.system = site.mount = site.file_system.id = "network";
    site.metadata_servers = {0};
}

}  // namespace

int main() {
    SystemModel site;
    Ends ends;
    MachineOptions options{1, 0};
    read(site, ends, options);
    Machine machine(site, options, ends);
    ends.remaining = ends.flows.size();
    // All is asked for at once, a message of each flow in turn: a client has so many of a flow under way, and the rest
    // waits there.
    std::vector<ModelOperation> next;
    std::uint64_t longest = 0;
    for (std::size_t i = 0; i < ends.flows.size(); ++i) {
        const Flow& flow = ends.flows[i];
        ModelOperation operation;
        operation.kind = flow.writing ? ModelCallKind::write : ModelCallKind::read;
        operation.direct = true;
        operation.stream = machine.begin_stream(flow.client);
        operation.file = machine.get_file("f" + std::to_string(i));
        operation.tag = i;
        machine.set_layout(operation.file, {message, 1, flow.target});
        if (!flow.writing) {
            machine.resize_file(operation.file, flow.bytes);
        }
        next.push_back(operation);
        longest = std::max(longest, flow.bytes);
    }
    for (std::uint64_t position = 0; position < longest; position += message) {
        for (ModelOperation& operation : next) {
            Flow& flow = ends.flows[operation.tag];
            if (position < flow.bytes) {
                operation.offset = position;
                operation.length = std::min(message, flow.bytes - position);
                ++flow.left;
                machine.submit(0, operation);
            }
        }
    }
    while (ends.remaining > 0 && machine.handle_next_event()) {
    }
    for (const Flow& flow : ends.flows) {
        std::printf("%lld\n", static_cast<long long>(flow.end));
    }
    std::printf("events %llu\n", static_cast<unsigned long long>(machine.handled_event_count()));
    return 0;
}
