// SPDX-License-Identifier: Apache-2.0
// What each fault changes in the machine when it begins, and restores when it ends.
#include "model/core.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace sonde::simulate {
namespace {

/// From this factor on, a slow target is logged by its server.
constexpr double logged_slowdown = 3;
/// From this share of the threads' time on, a metadata server logs that it is overloaded.
constexpr double logged_metadata_load = 0.8;

StorageTarget& named_target(Core& core, const Fault& fault) {
    return core.targets[static_cast<std::size_t>(find_target(core.site, fault.part))];
}

/// The host that logs errors of a target: its server, or the first client for local storage.
const std::string& logging_host(const Core& core, const StorageTarget& target) {
    return target.site.server >= 0 ? core.servers[static_cast<std::size_t>(target.site.server)].site.id
                                   : core.clients.front().site.id;
}

void slow_target(Core& core, const Fault& fault, bool begins) {
    StorageTarget& target = named_target(core, fault);
    target.slowdown = target.site.slowdown * (begins ? fault.amount : 1);
    if (begins && fault.amount >= logged_slowdown) {
        core.log(logging_host(core, target),
                 core.traces.targets[static_cast<std::size_t>(&target - core.targets.data())].name +
                     ": slow start_page_write 30s");
    }
}

void slow_node(Core& core, const Fault& fault, bool begins) {
    Client& client = core.clients[static_cast<std::size_t>(find_client(core.site, fault.part))];
    client.slowdown = client.site.slowdown * (begins ? fault.amount : 1);
    if (client.site.link >= 0) {
        Link& link = core.links[static_cast<std::size_t>(client.site.link)];
        link.slowdown = link.site.slowdown * (begins ? fault.amount : 1);
    }
}

void fail_drive(Core& core, const Fault& fault, bool begins) {
    named_target(core, fault).retry_share = begins ? fault.amount : 0;
}

void rebuild_raid(Core& core, const Fault& fault, bool begins) {
    StorageTarget& target = named_target(core, fault);
    const MediumSite* medium =
        target.site.medium >= 0 ? &core.media[static_cast<std::size_t>(target.site.medium)].site : nullptr;
    const double share = fault.has_default_amount && medium != nullptr ? medium->rebuild_share : fault.amount;
    target.rebuild_share = begins ? std::max(share, 1e-9) : 0;
    const std::string array = medium != nullptr ? medium->id : target.site.id;
    const std::string& host = logging_host(core, target);
    if (begins) {
        core.log(host, "md/raid:" + array + ": Disk failure, disabling device.");
        core.log(host, "md: recovery of RAID array " + array);
    } else {
        core.log(host, "md: " + array + ": recovery done.");
    }
}

void add_neighbor_load(Core& core, const Fault& fault, bool begins) {
    core.neighbor_share = begins ? fault.amount : 0;
    for (std::uint32_t target = 0; begins && target < core.targets.size(); ++target) {
        if (!core.targets[target].neighbor_planned) {
            core.targets[target].neighbor_planned = true;
            core.push(core.now, EventKind::neighbor_request, target);
        }
    }
}

void lose_router(Core& core, const Fault& fault, bool begins) {
    const auto link =
        static_cast<std::uint32_t>(core.site.routers[static_cast<std::size_t>(find_router(core.site, fault.part))]);
    std::erase(core.routers, link);
    if (!begins) {
        core.routers.insert(core.routers.end(), core.links[link].site.weight, link);
    }
    core.log(core.servers.front().site.id,
             begins ? "LNet: router " + fault.part + " is down" : "LNet: route through " + fault.part + " is up again");
}

void unbalance_paths(Core& core, const Fault& fault, bool begins) {
    core.first_route_weight = begins ? fault.amount : 1;
}

void saturate_metadata_servers(Core& core, const Fault& fault, bool begins) {
    core.count_background_metadata();
    core.metadata_share = begins ? fault.amount : 0;
    if (core.metadata_share >= logged_metadata_load) {
        for (const int server : core.site.metadata_servers) {
            core.log(core.servers[static_cast<std::size_t>(server)].site.id,
                     "mdt: This server is not able to keep up with request traffic (cpu-bound).");
        }
    }
}

void limit_server_caches(Core& core, const Fault& fault, bool begins) {
    for (std::size_t i = 0; i < core.servers.size(); ++i) {
        core.servers[i].site.cache_max_file =
            begins ? static_cast<std::uint64_t>(fault.amount) : core.site.servers[i].cache_max_file;
    }
}

void set_tunable(Core& core, const Fault& fault, bool begins) {
    const auto amount = static_cast<std::uint64_t>(fault.amount);
    for (std::size_t i = 0; i < core.clients.size(); ++i) {
        ClientSite& current = core.clients[i].site;
        const ClientSite& described = core.site.clients[i];
        const auto choose = [&](std::uint64_t original) { return begins ? amount : original; };
        if (fault.part == "rpc_size") {
            current.rpc_size = std::max<std::uint64_t>(choose(described.rpc_size), page_bytes);
        } else if (fault.part == "rpcs_in_flight") {
            current.rpcs_in_flight = static_cast<std::uint32_t>(choose(described.rpcs_in_flight));
        } else if (fault.part == "dirty_per_target") {
            current.dirty_per_target = choose(described.dirty_per_target);
        } else if (fault.part == "dirty_limit") {
            current.dirty_limit = choose(described.dirty_limit);
        } else if (fault.part == "read_ahead") {
            current.read_ahead = choose(described.read_ahead);
        } else {
            current.page_cache = choose(described.page_cache);
            core.clients[i].pages.set_capacity(current.page_cache);
        }
    }
}

void slow_cached_reads(Core& core, const Fault& fault, bool begins) {
    core.cached_page_cost_s = begins ? fault.amount : core.site.fs.cached_page_cost_s;
}

void fill_file_system(Core& core, const Fault& fault, bool begins) {
    core.full_share = begins ? fault.amount : -1;
}

void misalign_slices(Core& core, const Fault& fault, bool begins) {
    for (StorageTarget& target : core.targets) {
        target.shift = begins ? static_cast<std::uint64_t>(fault.amount) : 0;
    }
}

/// Switches a fault on (`begins`) or off.
using FaultEffect = void (*)(Core& core, const Fault& fault, bool begins);

struct FaultEffectOfKind {
    FaultKind kind;
    FaultEffect effect;
};

/// In the order of FaultKind.
constexpr std::array fault_effects{
    FaultEffectOfKind{FaultKind::slow_target, slow_target},
    FaultEffectOfKind{FaultKind::slow_node, slow_node},
    FaultEffectOfKind{FaultKind::failing_drive, fail_drive},
    FaultEffectOfKind{FaultKind::raid_rebuild, rebuild_raid},
    FaultEffectOfKind{FaultKind::noisy_neighbor, add_neighbor_load},
    FaultEffectOfKind{FaultKind::router_lost, lose_router},
    FaultEffectOfKind{FaultKind::unbalanced_path, unbalance_paths},
    FaultEffectOfKind{FaultKind::mds_saturated, saturate_metadata_servers},
    FaultEffectOfKind{FaultKind::cache_limit, limit_server_caches},
    FaultEffectOfKind{FaultKind::tunable, set_tunable},
    FaultEffectOfKind{FaultKind::client_software, slow_cached_reads},
    FaultEffectOfKind{FaultKind::full_file_system, fill_file_system},
    FaultEffectOfKind{FaultKind::misaligned_slices, misalign_slices},
};

/// Whether both tables have a row for each FaultKind, at its index.
constexpr bool tables_follow_fault_kinds() {
    bool follow = fault_effects.size() == fault_rules.size();
    for (std::size_t i = 0; follow && i < fault_effects.size(); ++i) {
        const auto kind = static_cast<FaultKind>(i);
        follow = fault_effects[i].kind == kind && fault_rules[i].kind == kind;
    }
    return follow;
}
static_assert(tables_follow_fault_kinds());

FaultEffect fault_effect(FaultKind kind) {
    return fault_effects[static_cast<std::size_t>(kind)].effect;
}

}  // namespace

void Core::begin_fault(const Fault& fault) {
    check_fault(fault, site);
    if (fault.kind == FaultKind::router_lost) {
        std::set<int> lost{find_router(site, fault.part)};
        for (const Fault& other : faults) {
            if (other.kind == FaultKind::router_lost) {
                lost.insert(find_router(site, other.part));
            }
        }
        if (lost.size() >= site.routers.size()) {
            throw SiteError("fault \"" + fault.text() + "\": it is the last router, and nothing would arrive");
        }
    }
    if (fault.from > now) {
        const auto index = static_cast<std::uint32_t>(planned_faults.size());
        planned_faults.push_back(fault);
        push(fault.from, EventKind::fault, index);
    } else {
        std::erase_if(faults, [&](const Fault& other) { return has_same_part(other, fault) && other.from <= now; });
        fault_effect(fault.kind)(*this, fault, true);
    }
    faults.push_back(fault);
}

void Core::end_fault(const Fault& fault) {
    check_fault(fault, site);
    std::erase_if(faults, [&](const Fault& other) { return has_same_part(other, fault); });
    fault_effect(fault.kind)(*this, fault, false);
}

/// Begins a planned fault at its time, unless it was ended before.
void Core::begin_planned_fault(std::uint32_t index) {
    const Fault& fault = planned_faults[index];
    if (std::any_of(faults.begin(), faults.end(),
                    [&](const Fault& other) { return has_same_part(other, fault) && other.from == fault.from; })) {
        fault_effect(fault.kind)(*this, fault, true);
    }
}

}  // namespace sonde::simulate
