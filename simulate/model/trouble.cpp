// SPDX-License-Identifier: Apache-2.0
// Faults begin and end, and others use the same storage.
#include "model/core.hpp"

#include <algorithm>
#include <set>

namespace sonde::simulate {
namespace {

/// Of what a server says when a request took so long that somebody notices.
constexpr double slow_enough = 3;
/// Of the threads of a metadata server: from here on it says that it cannot keep up.
constexpr double busy_enough = 0.8;

}  // namespace

void Core::begin_fault(const Fault& fault) {
    check_fault(fault, site);
    if (fault.kind == FaultKind::router_lost) {
        std::set<int> lost{router_named(site, fault.part)};
        for (const Fault& other : faults) {
            if (other.kind == FaultKind::router_lost) {
                lost.insert(router_named(site, other.part));
            }
        }
        if (lost.size() >= site.routers.size()) {
            throw SiteError("fault \"" + fault.text() + "\": it is the last router, and nothing would arrive");
        }
    }
    if (fault.from > now) {
        const auto index = static_cast<std::uint32_t>(planned.size());
        planned.push_back(fault);
        push(fault.from, Happens::fault, index);
    } else {
        std::erase_if(faults, [&](const Fault& other) { return same_part(other, fault) && other.from <= now; });
        apply(fault, true);
    }
    faults.push_back(fault);
}

void Core::end_fault(const Fault& fault) {
    check_fault(fault, site);
    std::erase_if(faults, [&](const Fault& other) { return same_part(other, fault); });
    apply(fault, false);
}

/// The time of a planned fault has come, unless it was ended before.
void Core::begin_planned(std::uint32_t index) {
    const Fault& fault = planned[index];
    if (std::any_of(faults.begin(), faults.end(),
                    [&](const Fault& other) { return same_part(other, fault) && other.from == fault.from; })) {
        apply(fault, true);
    }
}

void Core::apply(const Fault& fault, bool on) {
    const auto target_of = [&]() -> Target& {
        return targets[static_cast<std::size_t>(target_named(site, fault.part))];
    };
    const auto host_of = [&](const Target& target) {
        return target.site.server >= 0 ? servers[static_cast<std::size_t>(target.site.server)].site.id
                                       : clients.front().site.id;
    };
    switch (fault.kind) {
        case FaultKind::slow_target: {
            Target& target = target_of();
            target.factor = target.site.slowdown * (on ? fault.amount : 1);
            if (on && fault.amount >= slow_enough) {
                say(host_of(target), traces.targets[static_cast<std::size_t>(&target - targets.data())].name +
                                         ": slow start_page_write 30s");
            }
            return;
        }
        case FaultKind::slow_node: {
            Client& client = clients[static_cast<std::size_t>(client_named(site, fault.part))];
            client.factor = client.site.slowdown * (on ? fault.amount : 1);
            if (client.site.link >= 0) {
                Link& link = links[static_cast<std::size_t>(client.site.link)];
                link.factor = link.site.slowdown * (on ? fault.amount : 1);
            }
            return;
        }
        case FaultKind::failing_drive:
            target_of().retry_share = on ? fault.amount : 0;
            return;
        case FaultKind::raid_rebuild: {
            Target& target = target_of();
            const double share = fault.usual && target.site.medium >= 0
                                     ? media[static_cast<std::size_t>(target.site.medium)].site.rebuild_share
                                     : fault.amount;
            target.rebuild_share = on ? std::max(share, 1e-9) : 0;
            const std::string array =
                target.site.medium >= 0 ? media[static_cast<std::size_t>(target.site.medium)].site.id : target.site.id;
            say(host_of(target),
                on ? "md/raid:" + array + ": Disk failure, disabling device." : "md: " + array + ": recovery done.");
            if (on) {
                say(host_of(target), "md: recovery of RAID array " + array);
            }
            return;
        }
        case FaultKind::noisy_neighbour: {
            neighbour_share = on ? fault.amount : 0;
            for (std::uint32_t target = 0; on && target < targets.size(); ++target) {
                if (!targets[target].neighbour_comes) {
                    targets[target].neighbour_comes = true;
                    push(now, Happens::neighbour, target);
                }
            }
            return;
        }
        case FaultKind::router_lost: {
            const auto link =
                static_cast<std::uint32_t>(site.routers[static_cast<std::size_t>(router_named(site, fault.part))]);
            std::erase(routers, link);
            if (!on) {
                routers.insert(routers.end(), links[link].site.weight, link);
            }
            say(servers.front().site.id, std::string("LNet: ") + (on ? "router " : "route through ") + fault.part +
                                             (on ? " is down" : " is up again"));
            return;
        }
        case FaultKind::unbalanced_path:
            way_weight = on ? fault.amount : 1;
            return;
        case FaultKind::mds_saturated:
            count_others();
            names_share = on ? fault.amount : 0;
            if (names_share >= busy_enough) {
                for (const int server : site.metadata_servers) {
                    say(servers[static_cast<std::size_t>(server)].site.id,
                        "mdt: This server is not able to keep up with request traffic (cpu-bound).");
                }
            }
            return;
        case FaultKind::cache_limit:
            for (std::size_t i = 0; i < servers.size(); ++i) {
                servers[i].site.cache_max_file =
                    on ? static_cast<std::uint64_t>(fault.amount) : site.servers[i].cache_max_file;
            }
            return;
        case FaultKind::tunable: {
            const auto value = static_cast<std::uint64_t>(fault.amount);
            for (std::size_t i = 0; i < clients.size(); ++i) {
                ClientSite& own = clients[i].site;
                const ClientSite& built = site.clients[i];
                const auto set = [&](std::uint64_t& known, std::uint64_t before) { known = on ? value : before; };
                if (fault.part == "rpc_size") {
                    own.rpc_size = std::max<std::uint64_t>(on ? value : built.rpc_size, page);
                } else if (fault.part == "rpcs_in_flight") {
                    own.rpcs_in_flight = on ? static_cast<std::uint32_t>(value) : built.rpcs_in_flight;
                } else if (fault.part == "dirty_per_target") {
                    set(own.dirty_per_target, built.dirty_per_target);
                } else if (fault.part == "dirty_limit") {
                    set(own.dirty_limit, built.dirty_limit);
                } else if (fault.part == "read_ahead") {
                    set(own.read_ahead, built.read_ahead);
                } else {
                    set(own.page_cache, built.page_cache);
                    clients[i].pages.set_capacity(own.page_cache);
                }
            }
            return;
        }
        case FaultKind::client_software:
            cached_page_cost_s = on ? fault.amount : site.fs.cached_page_cost_s;
            return;
        case FaultKind::full_file_system:
            full_share = on ? fault.amount : -1;
            return;
        case FaultKind::misaligned_slices:
            for (Target& target : targets) {
                target.shift = on ? static_cast<std::uint64_t>(fault.amount) : 0;
            }
            return;
    }
}

/// A request of somebody else, at random times: an M/G/1 queue beside ours. While we have nothing under way, the others
/// wait too, so that a simulation ends.
void Core::neighbour(std::uint32_t index) {
    Target& target = targets[index];
    target.neighbour_comes = false;
    if (neighbour_share <= 0) {
        return;
    }
    Medium* medium = target.site.medium >= 0 ? &media[static_cast<std::size_t>(target.site.medium)] : nullptr;
    MediaRequest request;
    request.object = ~0ULL - 1 - chance.below(64);  // files of others: never where we left off
    request.offset = chance.below(1U << 20U) << 20U;
    request.length = 1U << 20U;
    request.writing = true;
    const double rate = target.site.rate.write > 0 ? target.site.rate.write
                        : medium != nullptr        ? medium->site.rate.write
                                                   : 0;
    if (rate <= 0) {
        return;
    }
    if (under_way > 0) {
        serve(target, medium, request, now);
        TargetTrace& trace = traces.targets[index];
        trace.write_bytes.add(request.length);
        trace.other_bytes += request.length;
    }
    const double mean_s = static_cast<double>(request.length) / (rate * neighbour_share);
    target.neighbour_comes = true;
    push(later(now, std::max<Time>(time_of(mean_s * chance.exponential()), 1)), Happens::neighbour, index);
}

/// What others ask of the metadata servers since this was last counted: getattr, as many as keep the threads busy for
/// their share of the time.
void Core::count_others() {
    const Time since = now - others_counted;
    others_counted = now;
    if (names_share <= 0) {
        return;
    }
    for (std::size_t i = 0; i < site.metadata_servers.size(); ++i) {
        const ServerSite& of = servers[static_cast<std::size_t>(site.metadata_servers[i])].site;
        if (of.stat > 0) {
            const double asked = names_share * of.threads * seconds(since) / seconds(of.stat);
            ServerTrace& trace = traces.metadata[i];
            trace.others += asked;
            trace.other_us = static_cast<std::uint64_t>(of.stat / 1000);
        }
    }
}

}  // namespace sonde::simulate
