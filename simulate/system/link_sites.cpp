// SPDX-License-Identifier: Apache-2.0
#include "system/link_sites.hpp"

#include <algorithm>
#include <unordered_map>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// Bytes/s of an interface: its own rate or that of its network, times their number.
DirectedRate read_interface_rate(const SystemParts& system, const json& interface) {
    DirectedRate rate = rate_of(interface);
    if (rate.write <= 0) {
        if (const json* network = system.find(text(interface, "network"))) {
            rate = rate_of(*network);
        }
    }
    const double count = std::max(number(interface, "count", 1), 1.0);
    return {rate.read * count, rate.write * count};
}

std::vector<std::string> list_networks(const json& host) {
    std::vector<std::string> names;
    for (const json& interface : host.value("interfaces", json::array())) {
        names.push_back(text(interface, "network"));
    }
    return names;
}

bool have_common_network(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

void apply_network(LinkSite& link, const json* network) {
    if (network == nullptr) {
        return;
    }
    link.latency = duration(*network, "latency", 0);
    link.request_cost = parameter_duration(*network, "message_cost", 0);
    link.half_duplex = text(*network, "duplex") == "half";
    link.noise = parameter(*network, "noise", 0);
    link.slowdown = parameter(*network, "slowdown", 1);
}

/// Adds one link for all adapters of a host and returns its index; -1 when they have no limit and no delay.
int add_adapter(SiteModel& site, const SystemParts& system, const json& host) {
    LinkSite link;
    link.id = text(host, "id");
    for (const json& interface : host.value("interfaces", json::array())) {
        const DirectedRate rate = read_interface_rate(system, interface);
        link.rate.read += rate.read;
        link.rate.write += rate.write;
        apply_network(link, system.find(text(interface, "network")));
    }
    if (link.rate.write <= 0 && link.latency == 0 && link.request_cost == 0) {
        return -1;
    }
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// Adds the link of a host that forwards data and returns its index. Its rate is the lowest of its interfaces and
/// `host_rate`.
int add_forwarding_host(SiteModel& site, const SystemParts& system, const json& host, DirectedRate host_rate) {
    LinkSite link;
    link.id = text(host, "id");
    link.rate = host_rate;
    for (const json& interface : host.value("interfaces", json::array())) {
        const DirectedRate interface_rate = read_interface_rate(system, interface);
        const auto lower = [](double& rate, double limit) {
            rate = rate <= 0 ? limit : limit <= 0 ? rate : std::min(rate, limit);
        };
        lower(link.rate.read, interface_rate.read);
        lower(link.rate.write, interface_rate.write);
    }
    link.request_cost = parameter_duration(host, "request_cost", 0);
    link.noise = parameter(host, "noise", 0);
    link.slowdown = parameter(host, "slowdown", 1);
    link.weight = std::max(count(host, "weight", 1), 1U);
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// Appends to `paths` the paths along [[links]] from a host to a controller: each a list of link ids, at most 5. At
/// most 16 paths are found.
void find_paths(const SystemParts& system, const std::string& from, const std::string& to,
                std::vector<std::string>& path, std::vector<std::vector<std::string>>& paths) {
    if (from == to) {
        paths.push_back(path);
        return;
    }
    constexpr std::size_t max_length = 5, max_paths = 16;
    if (path.size() >= max_length || paths.size() >= max_paths) {
        return;
    }
    for (const json& link : system.list("links")) {
        const std::string id = text(link, "id");
        if (text(link, "near") == from && std::find(path.begin(), path.end(), id) == path.end()) {
            path.push_back(id);
            find_paths(system, text(link, "far"), to, path, paths);
            path.pop_back();
        }
    }
}

class LocalPaths {
 public:
    LocalPaths(SiteModel& site, const SystemParts& system) : site_(site), system_(system) {}

    void add_paths(TargetSite& target) {
        const std::string controller = find_controller(target);
        if (controller.empty()) {
            return;
        }
        std::vector<std::vector<std::string>> paths;
        for (const ClientSite& client : site_.clients) {
            std::vector<std::string> path;
            find_paths(system_, client.id, controller, path, paths);
        }
        for (const std::vector<std::string>& path : paths) {
            std::vector<int> links;
            for (const std::string& id : path) {
                links.push_back(get_link(id));
            }
            links.push_back(get_controller_link(controller));
            target.paths.push_back(links);
        }
    }

 private:
    /// The controller of the LUN or RAID group below a target; empty: none is described.
    std::string find_controller(const TargetSite& target) const {
        for (const json* part = system_.find(target.id); part != nullptr;) {
            if (const std::string name = text(*part, "controller"); !name.empty()) {
                return name;
            }
            const std::string next = part->contains("on") ? text(*part, "on") : text(*part, "raid_group");
            part = next.empty() ? nullptr : system_.find(next);
        }
        return {};
    }
    int get_link(const std::string& id) {
        const auto [entry, is_new] = link_indices_.try_emplace(id, 0);
        if (is_new) {
            const json& part = system_.get(id);
            const json* network = system_.find(text(part, "network"));
            LinkSite link;
            link.id = id;
            link.rate = rate_of(part);
            if (link.rate.write <= 0 && network != nullptr) {
                link.rate = rate_of(*network);
            }
            const double count = std::max(number(part, "count", 1), 1.0);
            link.rate = {link.rate.read * count, link.rate.write * count};
            apply_network(link, network);
            site_.links.push_back(link);
            entry->second = static_cast<int>(site_.links.size()) - 1;
        }
        return entry->second;
    }
    int get_controller_link(const std::string& id) {
        const auto [entry, is_new] = link_indices_.try_emplace(id, 0);
        if (is_new) {
            const json& part = system_.get(id);
            LinkSite link;
            link.id = id;
            link.rate = rate_of(part);
            if (link.rate.write <= 0) {
                const DirectedRate port = rate_of(part, "port_rate");
                const double ports = std::max(number(part, "ports", 1), 1.0);
                link.rate = {port.read * ports, port.write * ports};
            }
            link.request_cost = parameter_duration(part, "request_cost", 0);
            link.noise = parameter(part, "noise", 0);
            link.slowdown = parameter(part, "slowdown", 1);
            site_.links.push_back(link);
            entry->second = static_cast<int>(site_.links.size()) - 1;
        }
        return entry->second;
    }

    SiteModel& site_;
    const SystemParts& system_;
    std::unordered_map<std::string, int> link_indices_;  ///< by id
};

/// Adds the hosts that forward the calls of a mount's clients. A forwarder on a network of the servers needs no router,
/// and the packet rate of a router does not limit the calls that it forwards.
void add_forwarders(SiteModel& site, const SystemParts& system, const json& mount,
                    const std::vector<std::string>& server_networks) {
    const double forward_rate = parameter_rate(mount, "forward_rate", 0);
    bool reach_servers = true;
    for (const std::string& id : texts(mount, "via")) {
        const json& host = system.get(id);
        const json& routers = system.list("routers");
        const bool is_router =
            std::any_of(routers.begin(), routers.end(), [&id](const json& router) { return text(router, "id") == id; });
        const DirectedRate host_rate = forward_rate > 0 ? DirectedRate{forward_rate, forward_rate}
                                       : is_router      ? DirectedRate{}
                                                        : rate_of(host);
        site.forwarders.push_back(add_forwarding_host(site, system, host, host_rate));
        reach_servers = reach_servers && have_common_network(list_networks(host), server_networks);
    }
    if (!site.forwarders.empty() && reach_servers) {
        site.routers.clear();
    }
    site.forward_cost = parameter_duration(mount, "forward_cost", 0);
    site.forward_threads = parameter_count(mount, "forward_threads", 0);
}

/// Adds the limits of the client software of the mount.
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

void add_links(SiteModel& site, const SystemParts& system, const json& mount) {
    std::vector<std::string> server_networks;
    for (ServerSite& server : site.servers) {
        if (const json* host = system.find(server.id)) {
            server.link = add_adapter(site, system, *host);
            const std::vector<std::string> networks = list_networks(*host);
            server_networks.insert(server_networks.end(), networks.begin(), networks.end());
        }
    }
    bool has_routed_clients = false;
    std::vector<std::string> routed_networks;
    for (ClientSite& client : site.clients) {
        const json& host = system.get(client.id);
        client.link = add_adapter(site, system, host);
        const std::vector<std::string> networks = list_networks(host);
        client.routed =
            !networks.empty() && !server_networks.empty() && !have_common_network(networks, server_networks);
        if (client.routed && !has_routed_clients) {
            routed_networks = networks;
            has_routed_clients = true;
        }
    }
    for (const json& router : system.list("routers")) {
        const std::vector<std::string> networks = list_networks(router);
        if (has_routed_clients && have_common_network(networks, routed_networks) &&
            have_common_network(networks, server_networks)) {
            site.routers.push_back(add_forwarding_host(site, system, router, rate_of(router)));
        }
    }
    if (has_routed_clients && site.routers.empty()) {
        throw SiteError("system " + site.system + ": no router joins the networks of the clients of mount " +
                        site.mount + " with those of its servers; describe one with [[routers]]");
    }
    add_forwarders(site, system, mount, server_networks);
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
        LocalPaths local_paths(site, system);
        for (TargetSite& target : site.targets) {
            local_paths.add_paths(target);
        }
    }
}

}  // namespace sonde::simulate
