// SPDX-License-Identifier: Apache-2.0
// Faults begin and end, and others use the same storage.
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {
namespace {

/// Of what a server says when a request took so long that somebody notices.
constexpr double slow_enough = 3;

}  // namespace

void Core::begin_fault(const Fault& fault) {
    check_fault(fault, site);
    faults.push_back(fault);
    const auto index = static_cast<std::uint32_t>(faults.size() - 1);
    if (fault.from > now) {
        push(fault.from, Happens::fault, index);
    } else {
        apply(faults[index], true);
    }
}

void Core::apply(const Fault& fault, bool on) {
    const auto target_of = [&]() -> Target& { return targets[static_cast<std::size_t>(target_named(site, fault.part))]; };
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
            target.rebuild_share = on ? std::max(fault.amount, 1e-9) : 0;
            const std::string array = target.site.medium >= 0 ? media[static_cast<std::size_t>(target.site.medium)].site.id
                                                              : target.site.id;
            say(host_of(target), on ? "md/raid:" + array + ": Disk failure, disabling device."
                                    : "md: " + array + ": recovery done.");
            if (on) {
                say(host_of(target), "md: recovery of RAID array " + array);
            }
            return;
        }
        case FaultKind::noisy_neighbour: {
            const bool idle = neighbour_share <= 0;
            neighbour_share = on ? fault.amount : 0;
            for (std::uint32_t target = 0; on && idle && target < targets.size(); ++target) {
                push(now, Happens::neighbour, target);
            }
            return;
        }
        case FaultKind::router_lost: {
            const auto link = static_cast<std::uint32_t>(
                site.routers[static_cast<std::size_t>(router_named(site, fault.part))]);
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
            names_share = on ? fault.amount : 0;
            return;
        case FaultKind::cache_limit:
            for (Server& server : servers) {
                server.site.cache_max_file = on ? static_cast<std::uint64_t>(fault.amount) : 0;
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
            site.fs.cached_page_cost_s = on ? fault.amount : 0;
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
    if (neighbour_share <= 0) {
        return;
    }
    Target& target = targets[index];
    Medium* medium = target.site.medium >= 0 ? &media[static_cast<std::size_t>(target.site.medium)] : nullptr;
    MediaRequest request;
    request.object = ~0ULL - 1 - chance.below(64);  // files of others: never where we left off
    request.offset = chance.below(1U << 20U) << 20U;
    request.length = 1U << 20U;
    request.writing = true;
    const double rate = target.site.rate.write > 0 ? target.site.rate.write
                        : medium != nullptr       ? medium->site.rate.write
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
    push(now + std::max<Time>(time_of(mean_s * chance.exponential()), 1), Happens::neighbour, index);
}

}  // namespace sonde::simulate
