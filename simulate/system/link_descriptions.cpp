// SPDX-License-Identifier: Apache-2.0
#include "system/link_descriptions.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// Bytes/s of an interface: its own rate or that of its network, times their number.
DirectedRate read_interface_rate(const SystemParts& system, const json& interface) {
    DirectedRate rate = read_directed_rate(interface);
    if (rate.write <= 0) {
        if (const json* network = system.find(get_text(interface, "network"))) {
            rate = read_directed_rate(*network);
        }
    }
    const double count = std::max(get_number(interface, "count", 1), 1.0);
    return {rate.read * count, rate.write * count};
}

std::vector<std::string> list_networks_of_host(const json& host) {
    std::vector<std::string> names;
    for (const json& interface : host.value("interfaces", json::array())) {
        names.push_back(get_text(interface, "network"));
    }
    return names;
}

bool have_common_network(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

/// Latency of the first network of a host that is one of `networks`; 0: there is none.
Time latency_of_common_network(const SystemParts& system, const json& host, const std::vector<std::string>& networks) {
    for (const std::string& name : list_networks_of_host(host)) {
        const json* network = system.find(name);
        if (network != nullptr && std::find(networks.begin(), networks.end(), name) != networks.end()) {
            return get_duration(*network, "latency", 0);
        }
    }
    return 0;
}

/// Adds one link for all adapters of a host and returns its index; -1 when they have no limit and no delay.
int add_adapter(SystemModel& site, const SystemParts& system, const json& host) {
    LinkDescription link;
    link.id = get_text(host, "id");
    for (const json& interface : host.value("interfaces", json::array())) {
        const DirectedRate rate = read_interface_rate(system, interface);
        link.rate.read += rate.read;
        link.rate.write += rate.write;
        apply_network(link, system.find(get_text(interface, "network")));
    }
    if (link.rate.write <= 0 && link.latency == 0 && link.request_cost == 0) {
        return -1;
    }
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// Adds the link of a host that forwards data and returns its index. Its rate is the lowest of its interfaces and
/// `host_rate`.
int add_forwarding_host(SystemModel& site, const SystemParts& system, const json& host, DirectedRate host_rate) {
    LinkDescription link;
    link.id = get_text(host, "id");
    link.rate = host_rate;
    for (const json& interface : host.value("interfaces", json::array())) {
        const DirectedRate interface_rate = read_interface_rate(system, interface);
        const auto lower = [](double& rate, double limit) {
            rate = rate <= 0 ? limit : limit <= 0 ? rate : std::min(rate, limit);
        };
        lower(link.rate.read, interface_rate.read);
        lower(link.rate.write, interface_rate.write);
    }
    link.request_cost = get_parameter_duration(host, "request_cost", 0);
    link.noise = get_parameter(host, "noise", 0);
    link.slowdown = get_parameter(host, "slowdown", 1);
    link.path_weight = std::max(get_count(host, "weight", 1), 1U);
    link.priority = get_count(host, "priority", 0);
    site.links.push_back(link);
    return static_cast<int>(site.links.size()) - 1;
}

/// Whether the mount has forwarders and each of them is on a network of the servers, so that no router is needed.
bool do_forwarders_reach_servers(const SystemParts& system, const json& mount,
                                 const std::vector<std::string>& server_networks) {
    const std::vector<std::string> forwarders = get_texts(mount, "via");
    return !forwarders.empty() && std::all_of(forwarders.begin(), forwarders.end(), [&](const std::string& id) {
        return have_common_network(list_networks_of_host(system.get(id)), server_networks);
    });
}

/// Adds the hosts that forward the calls of a mount's clients. The packet rate of a router does not limit the calls
/// that it forwards.
void add_forwarders(SystemModel& site, const SystemParts& system, const json& mount,
                    const std::vector<std::string>& server_networks) {
    const double forward_rate = get_parameter_rate(mount, "forward_rate", 0);
    for (const std::string& id : get_texts(mount, "via")) {
        const json& host = system.get(id);
        const json& routers = system.list("routers");
        const bool is_router = std::any_of(routers.begin(), routers.end(),
                                           [&id](const json& router) { return get_text(router, "id") == id; });
        const DirectedRate host_rate = forward_rate > 0 ? DirectedRate{forward_rate, forward_rate}
                                       : is_router      ? DirectedRate{}
                                                        : read_directed_rate(host);
        site.forwarders.push_back(add_forwarding_host(site, system, host, host_rate));
        site.links.back().latency = latency_of_common_network(system, host, server_networks);
    }
    site.forward_cost = get_parameter_duration(mount, "forward_cost", 0);
    site.forward_threads = get_parameter_count(mount, "forward_threads", 0);
}

/// Adds the limits of the client software of the mount.
void add_client_software(SystemModel& site, const json& mount) {
    site.max_reads_in_flight = get_parameter_count(mount, "reads_in_flight", 0);
    site.max_writes_in_flight = get_parameter_count(mount, "writes_in_flight", 0);
    const DirectedRate rate{get_parameter_rate(mount, "client_read_rate", 0),
                            get_parameter_rate(mount, "client_write_rate", 0)};
    if (rate.read <= 0 && rate.write <= 0) {
        return;
    }
    for (ClientDescription& client : site.clients) {
        LinkDescription link;
        link.id = client.id + "/client";
        link.rate = rate;
        client.software_link = static_cast<int>(site.links.size());
        site.links.push_back(link);
    }
}

/// The network protocol that a router must forward for a kind of file system.
std::string get_router_protocol(const std::string& file_system_kind) {
    return file_system_kind == "lustre" ? "lnet" : "ip";
}

bool forwards_protocol(const json& router, const std::string& file_system_kind) {
    const std::string protocol = get_text(router, "protocol");
    return protocol.empty() || protocol == get_router_protocol(file_system_kind);
}

/// LNet network of a described network; Lustre's default is tcp.
std::string get_lnet_name(const SystemParts& system, const std::string& name) {
    const json* network = system.find(name);
    const std::string lnet = network != nullptr ? get_text(*network, "lnet") : "";
    return lnet.empty() ? "tcp" : lnet;
}

/// Stores how LNet of a server names the router in its messages.
void name_lnet_router(LinkDescription& link, const SystemParts& system, const json& router,
                      const std::vector<std::string>& client_networks,
                      const std::vector<std::string>& server_networks) {
    for (const json& interface : router.value("interfaces", json::array())) {
        const std::string network = get_text(interface, "network");
        const std::string lnet = get_lnet_name(system, network);
        if (link.routed_net.empty() && have_common_network({network}, client_networks)) {
            link.routed_net = lnet;
        }
        if (link.nid.empty() && have_common_network({network}, server_networks)) {
            const std::string nid = get_text(interface, "nid");
            link.nid = nid.empty() ? link.id + "@" + lnet : nid;
        }
    }
}

/// Adds the routers between the networks of clients and servers. Throws SystemModelError when there is none.
void add_routers(SystemModel& site, const SystemParts& system, const std::vector<std::string>& client_networks,
                 const std::vector<std::string>& server_networks) {
    bool has_other_protocol = false;
    for (const json& router : system.list("routers")) {
        const std::vector<std::string> networks = list_networks_of_host(router);
        if (!have_common_network(networks, client_networks) || !have_common_network(networks, server_networks)) {
            continue;
        }
        if (!forwards_protocol(router, site.file_system.kind)) {
            has_other_protocol = true;
            continue;
        }
        site.routers.push_back(add_forwarding_host(site, system, router, read_directed_rate(router)));
        site.links.back().latency = latency_of_common_network(system, router, server_networks);
        if (site.file_system.kind == "lustre") {
            name_lnet_router(site.links.back(), system, router, client_networks, server_networks);
        }
    }
    if (site.routers.empty()) {
        throw SystemModelError(
            "system " + site.system + ": no router joins the networks of the clients of mount " + site.mount +
            " with those of its servers; describe one with [[routers]]" +
            (has_other_protocol ? ", protocol \"" + get_router_protocol(site.file_system.kind) + "\"" : ""));
    }
}

}  // namespace

void apply_network(LinkDescription& link, const json* network) {
    if (network == nullptr) {
        return;
    }
    link.latency = get_duration(*network, "latency", 0);
    link.request_cost = get_parameter_duration(*network, "message_cost", 0);
    link.half_duplex = get_text(*network, "duplex") == "half";
    link.noise = get_parameter(*network, "noise", 0);
    link.slowdown = get_parameter(*network, "slowdown", 1);
}

void add_links(SystemModel& site, const SystemParts& system, const json& mount) {
    std::vector<std::string> server_networks;
    for (ServerDescription& server : site.servers) {
        if (const json* host = system.find(server.id)) {
            server.link = add_adapter(site, system, *host);
            const std::vector<std::string> networks = list_networks_of_host(*host);
            server_networks.insert(server_networks.end(), networks.begin(), networks.end());
        }
    }
    bool has_routed_clients = false, has_client_networks = false;
    std::vector<std::string> routed_networks;
    for (ClientDescription& client : site.clients) {
        const json& host = system.get(client.id);
        client.link = add_adapter(site, system, host);
        const std::vector<std::string> networks = list_networks_of_host(host);
        has_client_networks = has_client_networks || !networks.empty();
        client.uses_routers =
            !networks.empty() && !server_networks.empty() && !have_common_network(networks, server_networks);
        if (client.uses_routers && !has_routed_clients) {
            routed_networks = networks;
            has_routed_clients = true;
        }
    }
    if (has_routed_clients && !do_forwarders_reach_servers(system, mount, server_networks)) {
        add_routers(site, system, routed_networks, server_networks);
    }
    if (has_client_networks) {  // the client's link, the router or the forwarder has the latency of the last network
        for (const ServerDescription& server : site.servers) {
            if (server.link >= 0) {
                site.links[static_cast<std::size_t>(server.link)].latency = 0;
            }
        }
    }
    add_forwarders(site, system, mount, server_networks);
    add_client_software(site, mount);
    site.data_cost = get_parameter_duration(mount, "data_cost", 0);
    site.size_cost_s = get_parameter(mount, "size_cost", 0);
}

}  // namespace sonde::simulate
