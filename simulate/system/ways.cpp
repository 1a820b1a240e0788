// SPDX-License-Identifier: Apache-2.0
// Between clients and storage: adapters, routers, forwarders, channels and controllers.
#include "system/storage_sites.hpp"

#include <algorithm>
#include <unordered_map>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// Bytes/s of an interface: its own or its network's, times how many there are.
DirectedRate rate_of_interface(const Parts& system, const json& interface) {
    DirectedRate rate = rate_of(interface);
    if (rate.write <= 0) {
        if (const json* network = system.sought(text(interface, "network"))) {
            rate = rate_of(*network);
        }
    }
    const double count = std::max(number(interface, "count", 1), 1.0);
    return {rate.read * count, rate.write * count};
}

std::vector<std::string> networks_of(const json& host) {
    std::vector<std::string> names;
    for (const json& interface : host.value("interfaces", json::array())) {
        names.push_back(text(interface, "network"));
    }
    return names;
}

bool meet(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

void take_network(LinkSite& link, const json* network) {
    if (network == nullptr) {
        return;
    }
    link.latency = duration(*network, "latency", 0);
    link.request_cost = parameter_duration(*network, "message_cost", 0);
    link.half_duplex = text(*network, "duplex") == "half";
    link.noise = parameter(*network, "noise", 0);
    link.slowdown = parameter(*network, "slowdown", 1);
}

/// The link of a host's adapters, all together; -1 when nothing limits or delays it.
int adapter(SiteModel& site, const Parts& system, const json& host) {
    LinkSite link;
    link.id = text(host, "id");
    for (const json& interface : host.value("interfaces", json::array())) {
        const DirectedRate rate = rate_of_interface(system, interface);
        link.rate.read += rate.read;
        link.rate.write += rate.write;
        take_network(link, system.sought(text(interface, "network")));
    }
    if (link.rate.write <= 0 && link.latency == 0 && link.request_cost == 0) {
        return -1;
    }
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// A host that passes on what comes: the slower of its sides, and no faster than `own`.
int passing(SiteModel& site, const Parts& system, const json& host, DirectedRate own) {
    LinkSite link;
    link.id = text(host, "id");
    link.rate = own;
    for (const json& interface : host.value("interfaces", json::array())) {
        const DirectedRate side = rate_of_interface(system, interface);
        const auto lower = [](double& known, double other) {
            known = known <= 0 ? other : other <= 0 ? known : std::min(known, other);
        };
        lower(link.rate.read, side.read);
        lower(link.rate.write, side.write);
    }
    link.request_cost = parameter_duration(host, "request_cost", 0);
    link.noise = parameter(host, "noise", 0);
    link.slowdown = parameter(host, "slowdown", 1);
    link.weight = std::max(count(host, "weight", 1), 1U);
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// Ways along `links` from a host to a controller: each a list of links. `depth` keeps circles short.
void find_ways(const Parts& system, const std::string& from, const std::string& to, std::vector<std::string>& way,
               std::vector<std::vector<std::string>>& found) {
    if (from == to) {
        found.push_back(way);
        return;
    }
    constexpr std::size_t longest = 5, enough = 16;
    if (way.size() >= longest || found.size() >= enough) {
        return;
    }
    for (const json& link : system.list("links")) {
        const std::string id = text(link, "id");
        if (text(link, "near") == from && std::find(way.begin(), way.end(), id) == way.end()) {
            way.push_back(id);
            find_ways(system, text(link, "far"), to, way, found);
            way.pop_back();
        }
    }
}

class LocalWays {
 public:
    LocalWays(SiteModel& site, const Parts& system) : site_(site), system_(system) {}

    void add(TargetSite& target) {
        const std::string controller = controller_of(target);
        if (controller.empty()) {
            return;
        }
        std::vector<std::vector<std::string>> found;
        for (const ClientSite& client : site_.clients) {
            std::vector<std::string> way;
            find_ways(system_, client.id, controller, way, found);
        }
        for (const std::vector<std::string>& way : found) {
            std::vector<int> links;
            for (const std::string& id : way) {
                links.push_back(link(id));
            }
            links.push_back(of_controller(controller));
            target.paths.push_back(links);
        }
    }

 private:
    /// That of the LUN or of the RAID group on the way down.
    std::string controller_of(const TargetSite& target) const {
        for (const json* part = system_.sought(target.id); part != nullptr;) {
            if (const std::string name = text(*part, "controller"); !name.empty()) {
                return name;
            }
            const std::string below = part->contains("on") ? text(*part, "on") : text(*part, "raid_group");
            part = below.empty() ? nullptr : system_.sought(below);
        }
        return {};
    }
    int link(const std::string& id) {
        const auto [found, fresh] = known_.try_emplace(id, 0);
        if (fresh) {
            const json& part = system_.named(id);
            const json* network = system_.sought(text(part, "network"));
            LinkSite made;
            made.id = id;
            made.rate = rate_of(part);
            if (made.rate.write <= 0 && network != nullptr) {
                made.rate = rate_of(*network);
            }
            const double count = std::max(number(part, "count", 1), 1.0);
            made.rate = {made.rate.read * count, made.rate.write * count};
            take_network(made, network);
            site_.links.push_back(made);
            found->second = static_cast<int>(site_.links.size()) - 1;
        }
        return found->second;
    }
    int of_controller(const std::string& id) {
        const auto [found, fresh] = known_.try_emplace(id, 0);
        if (fresh) {
            const json& part = system_.named(id);
            LinkSite made;
            made.id = id;
            made.rate = rate_of(part);
            if (made.rate.write <= 0) {
                const DirectedRate port = rate_of(part, "port_rate");
                const double ports = std::max(number(part, "ports", 1), 1.0);
                made.rate = {port.read * ports, port.write * ports};
            }
            made.request_cost = parameter_duration(part, "request_cost", 0);
            made.noise = parameter(part, "noise", 0);
            made.slowdown = parameter(part, "slowdown", 1);
            site_.links.push_back(made);
            found->second = static_cast<int>(site_.links.size()) - 1;
        }
        return found->second;
    }

    SiteModel& site_;
    const Parts& system_;
    std::unordered_map<std::string, int> known_;
};

/// Hosts that make the calls of a mount's clients themselves. One that is on a network of the servers needs no router
/// there, and a router that forwards calls is not held back by its rate for packets.
void add_forwarders(SiteModel& site, const Parts& system, const json& mount, const std::vector<std::string>& behind) {
    const double said = parameter_rate(mount, "forward_rate", 0);
    bool there = true;
    for (const std::string& id : texts(mount, "via")) {
        const json& host = system.named(id);
        const json& routers = system.list("routers");
        const bool routes =
            std::any_of(routers.begin(), routers.end(), [&id](const json& router) { return text(router, "id") == id; });
        const DirectedRate own = said > 0 ? DirectedRate{said, said} : routes ? DirectedRate{} : rate_of(host);
        site.forwarders.push_back(passing(site, system, host, own));
        there = there && meet(networks_of(host), behind);
    }
    if (!site.forwarders.empty() && there) {
        site.routers.clear();
    }
    site.forward_cost = parameter_duration(mount, "forward_cost", 0);
    site.forward_threads = parameter_count(mount, "forward_threads", 0);
}

/// What the mount says of the software on each client.
void add_client_software(SiteModel& site, const json& mount) {
    site.reads_in_flight = parameter_count(mount, "reads_in_flight", 0);
    site.writes_in_flight = parameter_count(mount, "writes_in_flight", 0);
    const DirectedRate rate{parameter_rate(mount, "client_read_rate", 0),
                            parameter_rate(mount, "client_write_rate", 0)};
    if (rate.read <= 0 && rate.write <= 0) {
        return;
    }
    for (ClientSite& client : site.clients) {
        LinkSite link;
        link.id = client.id + "/client";
        link.rate = rate;
        client.software = static_cast<int>(site.links.size());
        site.links.push_back(link);
    }
}

}  // namespace

void add_ways(SiteModel& site, const Parts& system, const json& mount) {
    std::vector<std::string> behind;  // networks of the servers
    for (ServerSite& server : site.servers) {
        if (const json* host = system.sought(server.id)) {
            server.link = adapter(site, system, *host);
            const std::vector<std::string> own = networks_of(*host);
            behind.insert(behind.end(), own.begin(), own.end());
        }
    }
    bool routed = false;
    std::vector<std::string> before;
    for (ClientSite& client : site.clients) {
        const json& host = system.named(client.id);
        client.link = adapter(site, system, host);
        const std::vector<std::string> own = networks_of(host);
        client.routed = !own.empty() && !behind.empty() && !meet(own, behind);
        if (client.routed && !routed) {
            before = own;
            routed = true;
        }
    }
    for (const json& router : system.list("routers")) {
        const std::vector<std::string> sides = networks_of(router);
        if (routed && meet(sides, before) && meet(sides, behind)) {
            site.routers.push_back(passing(site, system, router, rate_of(router)));
        }
    }
    if (routed && site.routers.empty()) {
        throw SiteError("system " + site.system + ": no router joins the networks of the clients of mount " +
                        site.mount + " with those of its servers; describe one with [[routers]]");
    }
    add_forwarders(site, system, mount, behind);
    add_client_software(site, mount);
    site.data_cost = parameter_duration(mount, "data_cost", 0);
    site.size_cost_s = parameter(mount, "size_cost", 0);
    if (site.fs.local) {
        if (site.fs.log_rate > 0) {
            LinkSite log;
            log.id = site.fs.id + "/log";
            log.rate = {0, site.fs.log_rate};
            site.log = static_cast<int>(site.links.size());
            site.links.push_back(log);
        }
        LocalWays ways(site, system);
        for (TargetSite& target : site.targets) {
            ways.add(target);
        }
    }
}

}  // namespace sonde::simulate
