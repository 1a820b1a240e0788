// SPDX-License-Identifier: Apache-2.0
#include "model/network.hpp"

#include <algorithm>
#include <iterator>

namespace sonde::simulate {

namespace {

constexpr Time retransmission_time = 200'000'000;  ///< ns: Linux' least TCP timeout

}  // namespace

Network::Network(const SystemModel& site, NoiseSeeds& seeds, MonitoringData& monitoring)
    : site_(site), losses_(seeds.seed, 0x6c6f737365736cULL) {
    for (const LinkDescription& link : site.links) {
        links_.emplace_back(link, seeds.seed, ++seeds.part_count);
        monitoring.links.push_back({link.id, {}, {}, {}, {}, {}});
    }
    for (const int router : site.routers) {
        working_routers_.push_back(router);
    }
    select_routers();
    forwarders_.assign(site.forwarders.size(), MultiServerStation(site.forward_threads));
}

/// The index of the path that the next request takes.
std::size_t Network::choose_path(std::size_t choices, std::uint32_t& next_turn) const {
    const std::uint32_t turn = next_turn++;
    if (first_path_weight_ <= 1 || choices < 2) {
        return turn % choices;
    }
    // The first path gets `share` of the turns, evenly spread; the others get the rest in turn.
    const double share = first_path_weight_ / (first_path_weight_ + static_cast<double>(choices) - 1);
    const auto first_turns = [share](std::uint32_t turns) { return static_cast<std::uint32_t>(share * turns); };
    return first_turns(turn + 1) > first_turns(turn) ? 0 : 1 + (turn - first_turns(turn)) % (choices - 1);
}

void Network::choose_route(StorageRequest& request, Client& client, StorageTarget& target, const Server* server) {
    const auto add = [&request](int link) {
        if (link >= 0 && request.hop_count < std::size(request.hops)) {
            request.hops[request.hop_count++] = link;
        }
    };
    add(client.description.software_link);
    add(client.description.link);
    if (request.extends_file) {
        add(site_.log);
    }
    if (!target.description.paths.empty()) {
        for (const int link :
             target.description.paths[choose_path(target.description.paths.size(), target.next_path)]) {
            add(link);
        }
    } else {
        if (!site_.forwarders.empty()) {
            request.forwarder = choose_forwarder(client);
            add(site_.forwarders[request.forwarder]);
        }
        if (client.description.uses_routers && !routers_.empty()) {
            add(static_cast<int>(routers_[choose_path(routers_.size(), client.next_router)]));
        }
        if (server != nullptr) {
            add(server->description.link);
            add(server->description.limit_link);
        }
    }
    for (const int link : target.description.enclosure_links) {
        add(link);
    }
}

Link::LinkTransit Network::transmit_over_next_link(StorageRequest& request, Time head) {
    const std::size_t hop = request.is_write ? request.hop : request.hop_count - 1U - request.hop;
    Link& link = links_[static_cast<std::size_t>(request.hops[hop])];
    Time delay = 0;
    while (link.lost_message_share > 0 && losses_.uniform() < link.lost_message_share) {
        delay += retransmission_time;
        ++link.lost_messages;
    }
    Link::LinkTransit passage = link.transmit_message(head, request.last_byte_time, request.length, request.is_write);
    passage = {add_time(passage.first_byte, delay), add_time(passage.last_byte, delay)};
    request.last_byte_time = passage.last_byte;
    ++request.hop;
    return passage;
}

Time Network::message_time(const StorageRequest& request) const {
    Time time = 0;
    for (std::size_t i = 0; i < request.hop_count; ++i) {
        const LinkDescription& link = links_[static_cast<std::size_t>(request.hops[i])].description;
        time += link.latency + link.request_cost;
    }
    return time;
}

Time Network::metadata_message_time(const Client& client, const Server& server) const {
    Time time = 0;
    const auto add = [&](int link_index) {
        if (link_index >= 0) {
            const LinkDescription& link = links_[static_cast<std::size_t>(link_index)].description;
            time += link.latency + link.request_cost;
        }
    };
    add(client.description.link);
    if (!site_.forwarders.empty()) {
        add(site_.forwarders.front());
    }
    if (client.description.uses_routers && !routers_.empty()) {
        add(static_cast<int>(routers_.front()));
    }
    add(server.description.link);
    return time;
}

std::uint32_t Network::choose_forwarder(Client& client) const {
    return site_.forwarders.empty() ? 0 : client.next_forwarder++ % static_cast<std::uint32_t>(site_.forwarders.size());
}

Time Network::reserve_forwarder(std::uint32_t forwarder, Time arrival) {
    return site_.forwarders.empty() || site_.forward_cost == 0
               ? arrival
               : forwarders_[forwarder].reserve(arrival, site_.forward_cost).end;
}

void Network::set_slowdown(int link, double factor) {
    Link& slowed = links_[static_cast<std::size_t>(link)];
    slowed.slowdown = slowed.description.slowdown * factor;
}

void Network::copy_link_counters(MonitoringData& monitoring) const {
    for (std::size_t i = 0; i < links_.size(); ++i) {
        const Link& link = links_[i];
        monitoring.links[i] = {link.description.id, link.bytes[0],    link.messages[0],
                               link.bytes[1],       link.messages[1], link.lost_messages};
    }
}

/// Uses the working routers of the lowest priority number.
void Network::select_routers() {
    routers_.clear();
    const auto priority = [this](int router) { return site_.links[static_cast<std::size_t>(router)].priority; };
    const auto first = std::min_element(working_routers_.begin(), working_routers_.end(),
                                        [&](int a, int b) { return priority(a) < priority(b); });
    for (const int router : working_routers_) {
        if (priority(router) == priority(*first)) {
            routers_.insert(routers_.end(), site_.links[static_cast<std::size_t>(router)].path_weight,
                            static_cast<std::uint32_t>(router));
        }
    }
}

void Network::remove_router(int link) {
    std::erase(working_routers_, link);
    select_routers();
}

void Network::restore_router(int link) {
    std::erase(working_routers_, link);
    working_routers_.push_back(link);
    select_routers();
}

}  // namespace sonde::simulate
