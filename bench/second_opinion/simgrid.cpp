// SPDX-License-Identifier: Apache-2.0
// The same transfers as flows.cpp by SimGrid (LGPL; linked, never copied): fluid flows that share links max-min fairly,
// a target being one more link. Prints the end of each flow in nanoseconds.
#include <simgrid/s4u.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace {

namespace sg = simgrid::s4u;

/// A link for both directions, or one for each; none where there is no limit.
struct Way {
    std::vector<sg::LinkInRoute> up, down;
};

Way way(sg::NetZone* zone, const std::string& name, double rate, bool half) {
    if (rate <= 0) {
        return {};
    }
    const sg::Link* up = zone->create_link(name, rate)->set_latency(0)->seal();
    const sg::Link* down = half ? up : zone->create_link(name + "-down", rate)->set_latency(0)->seal();
    return {{sg::LinkInRoute(up)}, {sg::LinkInRoute(down)}};
}

struct Flow {
    std::size_t client, target;
    double bytes;
    bool writing;
};

}  // namespace

int main(int argc, char** argv) {
    sg::Engine engine(&argc, argv);
    sg::Engine::set_config("network/model:CM02");   // no factors of real networks
    sg::Engine::set_config("network/TCP-gamma:0");  // no window
    sg::Engine::set_config("network/crosstraffic:0");
    sg::Engine::set_config("network/weight-S:0");
    sg::NetZone* zone = sg::create_full_zone("network");
    Way router;
    std::vector<Way> clients, servers, targets;
    std::vector<std::size_t> server_of;
    std::vector<Flow> flows;
    std::string word, duplex, direction;
    double rate = 0;
    while (std::cin >> word) {
        if (word == "router") {
            std::cin >> rate >> duplex;
            router = way(zone, "router", rate, duplex == "half");
        } else if (word == "client") {
            std::cin >> rate >> duplex;
            clients.push_back(way(zone, "c" + std::to_string(clients.size()), rate, duplex == "half"));
        } else if (word == "server") {
            std::cin >> rate >> duplex;
            servers.push_back(way(zone, "s" + std::to_string(servers.size()), rate, duplex == "half"));
        } else if (word == "target") {
            std::size_t server = 0;
            std::cin >> server >> rate;
            server_of.push_back(server);
            targets.push_back(way(zone, "t" + std::to_string(targets.size()), rate, true));
        } else if (word == "flow") {
            Flow flow{};
            std::cin >> flow.client >> flow.target >> flow.bytes >> direction;
            flow.writing = direction == "w";
            flows.push_back(flow);
        } else {
            std::getline(std::cin, word);
        }
    }
    std::vector<double> ends(flows.size(), 0);
    std::vector<std::pair<sg::Host*, sg::Host*>> hosts;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const Flow& flow = flows[i];
        sg::Host* from = zone->create_host("from" + std::to_string(i), 1e9)->seal();
        sg::Host* to = zone->create_host("to" + std::to_string(i), 1e9)->seal();
        std::vector<sg::LinkInRoute> links;
        for (const Way* part :
             {&clients[flow.client], &router, &servers[server_of[flow.target]], &targets[flow.target]}) {
            const auto& of = flow.writing ? part->up : part->down;
            links.insert(links.end(), of.begin(), of.end());
        }
        zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
        hosts.emplace_back(from, to);
    }
    zone->seal();
    for (std::size_t i = 0; i < flows.size(); ++i) {
        sg::Actor::create("flow" + std::to_string(i), hosts[i].first, [&, i] {
            sg::Comm::sendto(hosts[i].first, hosts[i].second, static_cast<std::uint64_t>(flows[i].bytes));
            ends[i] = sg::Engine::get_clock();
        });
    }
    engine.run();
    for (const double end : ends) {
        std::printf("%lld\n", static_cast<long long>(std::llround(end * 1e9)));
    }
    return 0;
}
