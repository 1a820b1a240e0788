// SPDX-License-Identifier: Apache-2.0
// Changes of the machine by each fault: applied when the fault begins, restored when it ends.
#include "model/fault_switch.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <set>

namespace sonde::simulate {
namespace {

/// From this share of the threads' time on, a metadata server logs that it is overloaded.
constexpr double logged_metadata_load = 0.8;

std::uint32_t target_index(const MachineParts& parts, const Fault& fault) {
    return static_cast<std::uint32_t>(find_target_index(parts.system, fault.part));
}

StorageTarget& find_named_target(MachineParts& parts, const Fault& fault) {
    return parts.storage.target(target_index(parts, fault));
}

void slow_target(MachineParts& parts, const Fault& fault, bool begins) {
    StorageTarget& target = find_named_target(parts, fault);
    target.slowdown = target.description.slowdown * (begins ? fault.amount : 1);
}

void slow_node(MachineParts& parts, const Fault& fault, bool begins) {
    Client& client = parts.clients[static_cast<std::size_t>(find_client_index(parts.system, fault.part))];
    client.slowdown = client.description.slowdown * (begins ? fault.amount : 1);
    if (client.description.link >= 0) {
        parts.network.set_slowdown(client.description.link, begins ? fault.amount : 1);
    }
}

void fail_drive(MachineParts& parts, const Fault& fault, bool begins) {
    find_named_target(parts, fault).retry_share = begins ? fault.amount : 0;
}

/// Returns the name with "_" for each character that device names of the kernel lack.
std::string make_device_name(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
    return name;
}

/// Returns the name of an md array: that of the RAID group, which the kernel writes as md_NAME unless it is mdN.
std::string make_array_name(const std::string& group) {
    std::string name = make_device_name(group);
    std::replace(name.begin(), name.end(), '-', '_');
    return group.starts_with("md") ? name : "md_" + name;
}

void rebuild_raid(MachineParts& parts, const Fault& fault, bool begins) {
    StorageTarget& target = find_named_target(parts, fault);
    const MediumDescription* medium = target.description.medium >= 0
                                          ? &parts.system.media[static_cast<std::size_t>(target.description.medium)]
                                          : nullptr;
    const double share = fault.has_default_amount && medium != nullptr ? medium->rebuild_share : fault.amount;
    target.rebuild_share = begins ? std::max(share, 1e-9) : 0;
    const std::string array = make_array_name(medium != nullptr ? medium->id : target.description.id);
    const bool has_drives = medium != nullptr && !medium->drive_ids.empty();
    const std::string drive = has_drives ? make_device_name(medium->drive_ids.front()) : "sda";
    const std::string& host = parts.storage.log_host_of_target(target_index(parts, fault));
    const Time now = parts.timeline.now();
    if (begins) {
        parts.monitoring.log(now, host, "md/raid:" + array + ": Disk failure on " + drive + ", disabling device.");
        parts.monitoring.log(now, host, "md: recovery of RAID array " + array);
    } else {
        parts.monitoring.log(now, host, "md: " + array + ": recovery done.");
    }
}

void add_neighbor_load(MachineParts& parts, const Fault& fault, bool begins) {
    parts.neighbors.set_share(begins ? fault.amount : 0);
}

void lose_router(MachineParts& parts, const Fault& fault, bool begins) {
    const int link = parts.system.routers[static_cast<std::size_t>(find_router_index(parts.system, fault.part))];
    if (begins) {
        parts.network.remove_router(link);
    } else {
        parts.network.restore_router(link);
    }
    const LinkDescription& router = parts.system.links[static_cast<std::size_t>(link)];
    if (!router.nid.empty()) {  // IP routers fail without a message of the servers
        parts.monitoring.log(parts.timeline.now(), parts.servers.front().description.id,
                             "LNetError: 2107:0:(lib-lnet.h:1241:lnet_set_route_aliveness()) route to " +
                                 router.routed_net + " through " + router.nid +
                                 (begins ? " has gone from up to down" : " has gone from down to up"));
    }
}

void unbalance_paths(MachineParts& parts, const Fault& fault, bool begins) {
    parts.network.set_first_path_weight(begins ? fault.amount : 1);
}

void saturate_metadata_servers(MachineParts& parts, const Fault& fault, bool begins) {
    parts.metadata.set_background_load(begins ? fault.amount : 0);
    if (begins && fault.amount >= logged_metadata_load && parts.system.file_system.kind == "lustre") {
        for (const int server : parts.system.metadata_servers) {
            parts.monitoring.log(parts.timeline.now(), parts.system.servers[static_cast<std::size_t>(server)].id,
                                 "Lustre: mdt: This server is not able to keep up with request traffic (cpu-bound).");
        }
    }
}

void limit_server_caches(MachineParts& parts, const Fault& fault, bool begins) {
    for (std::size_t i = 0; i < parts.servers.size(); ++i) {
        parts.servers[i].description.max_cached_file_bytes =
            begins ? static_cast<std::uint64_t>(fault.amount) : parts.system.servers[i].max_cached_file_bytes;
    }
}

void set_tunable(MachineParts& parts, const Fault& fault, bool begins) {
    const auto amount = static_cast<std::uint64_t>(fault.amount);
    for (std::size_t i = 0; i < parts.clients.size(); ++i) {
        ClientDescription& current = parts.clients[i].description;
        const ClientDescription& described = parts.system.clients[i];
        const auto choose = [&](std::uint64_t original) { return begins ? amount : original; };
        if (fault.part == "rpc_size") {
            current.rpc_size = std::max<std::uint64_t>(choose(described.rpc_size), page_bytes);
        } else if (fault.part == "rpcs_in_flight") {
            current.rpcs_in_flight = static_cast<std::uint32_t>(choose(described.rpcs_in_flight));
        } else if (fault.part == "dirty_per_target") {
            current.dirty_bytes_per_target = choose(described.dirty_bytes_per_target);
        } else if (fault.part == "dirty_limit") {
            current.dirty_limit_bytes = choose(described.dirty_limit_bytes);
        } else if (fault.part == "read_ahead") {
            current.read_ahead_bytes = choose(described.read_ahead_bytes);
        } else {
            current.page_cache_bytes = choose(described.page_cache_bytes);
            parts.clients[i].pages.set_capacity(current.page_cache_bytes);
        }
    }
}

void slow_cached_reads(MachineParts& parts, const Fault& fault, bool begins) {
    parts.cache.set_cached_page_cost(begins ? fault.amount : parts.system.file_system.cached_page_cost_s);
}

void fill_file_system(MachineParts& parts, const Fault& fault, bool begins) {
    parts.files.set_fault_fill_level(begins ? fault.amount : -1);
}

void misalign_slices(MachineParts& parts, const Fault& fault, bool begins) {
    for (std::uint32_t i = 0; i < parts.storage.target_count(); ++i) {
        parts.storage.target(i).slice_misalignment = begins ? static_cast<std::uint64_t>(fault.amount) : 0;
    }
}

void slow_drive(MachineParts& parts, const Fault& fault, bool begins) {
    parts.storage.set_first_drive_slowdown(target_index(parts, fault), begins ? fault.amount : 1);
}

void slow_link(MachineParts& parts, const Fault& fault, bool begins) {
    parts.network.set_slowdown(find_link_index(parts.system, fault.part), begins ? fault.amount : 1);
}

void lose_messages(MachineParts& parts, const Fault& fault, bool begins) {
    parts.network.set_lost_message_share(find_link_index(parts.system, fault.part), begins ? fault.amount : 0);
}

void lose_server(MachineParts& parts, const Fault& fault, bool begins) {
    const int server = find_server_index(parts.system, fault.part);
    const Time now = parts.timeline.now();
    const int partner = parts.system.servers[static_cast<std::size_t>(server)].partner;
    const std::string& host = parts.system.servers[static_cast<std::size_t>(partner)].id;
    parts.storage.move_targets(server, begins, add_time(now, seconds_to_time(fault.amount)));
    const auto seconds = static_cast<long long>(fault.amount);
    char duration[32];
    std::snprintf(duration, sizeof duration, "%lld:%02lld", seconds / 60, seconds % 60);
    for (std::size_t i = 0; i < parts.system.targets.size(); ++i) {
        if (parts.system.targets[i].server == server && parts.system.file_system.kind == "lustre") {
            parts.monitoring.log(now, begins ? host : fault.part,
                                 "Lustre: " + parts.monitoring.targets[i].name + ": Will be in recovery for at least " +
                                     duration + ", or until " + std::to_string(parts.clients.size()) +
                                     " clients reconnect");
        }
    }
}

void write_through(MachineParts& parts, const Fault& fault, bool begins) {
    parts.storage.set_write_back(static_cast<std::size_t>(find_write_cache_index(parts.system, fault.part)), !begins);
}

/// Switches a fault on (`begins`) or off.
using FaultEffect = void (*)(MachineParts& parts, const Fault& fault, bool begins);

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
    FaultEffectOfKind{FaultKind::slow_drive, slow_drive},
    FaultEffectOfKind{FaultKind::slow_link, slow_link},
    FaultEffectOfKind{FaultKind::lossy_link, lose_messages},
    FaultEffectOfKind{FaultKind::server_lost, lose_server},
    FaultEffectOfKind{FaultKind::write_through, write_through},
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

/// Throws SystemModelError when no router remains.
void FaultSwitch::require_another_router(const Fault& fault) const {
    if (fault.kind != FaultKind::router_lost) {
        return;
    }
    std::set<int> lost{find_router_index(parts_.system, fault.part)};
    for (const Fault& other : faults_) {
        if (other.kind == FaultKind::router_lost) {
            lost.insert(find_router_index(parts_.system, other.part));
        }
    }
    if (lost.size() >= parts_.system.routers.size()) {
        throw SystemModelError("fault \"" + fault.to_text() + "\": it is the last router, and nothing would arrive");
    }
}

void FaultSwitch::begin(const Fault& fault) {
    check_fault(fault, parts_.system);
    require_another_router(fault);
    const Time now = parts_.timeline.now();
    if (fault.from > now) {
        const auto fault_index = static_cast<std::uint32_t>(planned_faults_.size());
        planned_faults_.push_back(fault);
        parts_.timeline.push(fault.from, EventKind::fault, fault_index);
    } else {
        std::erase_if(faults_, [&](const Fault& other) { return has_same_part(other, fault) && other.from <= now; });
        fault_effect(fault.kind)(parts_, fault, true);
    }
    faults_.push_back(fault);
    if (fault.until > 0) {
        ending_faults_.push_back(fault);
        parts_.timeline.push(std::max(fault.until, now), EventKind::fault_ends,
                             static_cast<std::uint32_t>(ending_faults_.size() - 1));
    }
}

void FaultSwitch::end_planned(std::uint32_t fault_index) {
    const Fault fault = ending_faults_[fault_index];
    const auto active = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& other) {
        return has_same_part(other, fault) && other.from == fault.from && other.until == fault.until;
    });
    if (active != faults_.end()) {
        faults_.erase(active);
        fault_effect(fault.kind)(parts_, fault, false);
    }
}

void FaultSwitch::end(const Fault& fault) {
    check_fault(fault, parts_.system);
    std::erase_if(faults_, [&](const Fault& other) { return has_same_part(other, fault); });
    fault_effect(fault.kind)(parts_, fault, false);
}

void FaultSwitch::begin_planned(std::uint32_t fault_index) {
    const Fault& fault = planned_faults_[fault_index];
    if (std::any_of(faults_.begin(), faults_.end(),
                    [&](const Fault& other) { return has_same_part(other, fault) && other.from == fault.from; })) {
        fault_effect(fault.kind)(parts_, fault, true);
    }
}

}  // namespace sonde::simulate
