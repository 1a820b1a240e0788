// SPDX-License-Identifier: Apache-2.0
#include "system/storage_descriptions.hpp"

#include <algorithm>
#include <map>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// The RAID group or drive below a slice, LUN or volume with one member.
const json& find_medium(const SystemParts& system, const json& device) {
    const std::string next = SystemParts::find_underlying_device(device);
    // It is a part of the system. NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter)
    return next.empty() ? device : find_medium(system, system.get(next));
}

/// The first drive of a RAID group, or the drive itself; null where none is described. `count` gets their number.
const json* find_drive(const SystemParts& system, const json& medium, std::size_t& count) {
    const std::vector<std::string> drives = get_texts(medium, "drives");
    count = drives.size();
    const json* drive = drives.empty() ? nullptr : system.find(drives.front());
    if (drive == nullptr && medium.contains("capacity") && !medium.contains("level")) {
        count = 1;
        return &medium;  // a drive without a RAID
    }
    return drive;
}

MediumDescription read_medium(const SystemParts& system, const json& group) {
    MediumDescription medium;
    medium.id = get_text(group, "id");
    medium.data_drives = get_count(group, "data", 1, 1);
    const double parity = get_count(group, "parity", 0);
    const std::string level = get_text(group, "level");
    const bool is_mirror = level == "1" || level == "10";
    medium.parity_drives = is_mirror ? 0 : static_cast<std::uint32_t>(parity);
    medium.segment_bytes = get_bytes(group, "segment", 0);
    std::size_t drive_count = 0;
    medium.drive_ids = get_texts(group, "drives");
    if (const json* drive = find_drive(system, group, drive_count)) {
        const DirectedRate drive_rate = read_directed_rate(*drive);
        const double data_and_parity = static_cast<double>(medium.data_drives) + parity;
        const double n = std::max(static_cast<double>(drive_count), 1.0);
        // A write transfers (data + parity) / data bytes per byte; a mirror reads from all drives.
        medium.rate = {drive_rate.read * n * (is_mirror ? 1 : medium.data_drives / data_and_parity),
                       drive_rate.write * n * medium.data_drives / data_and_parity};
        const double rotation_s = get_number(*drive, "rpm", 0) > 0 ? 60 / get_number(*drive, "rpm", 0) : 0;
        const bool is_rotating = get_text(*drive, "kind") == "hdd";
        // If the drive states operations per second, the seek time follows from them. If not, the model charges no seek
        // for long requests of a hard disk, because the elevator merges them.
        const double operations = get_number(*drive, "operations", 0);
        const bool has_seek = has_parameter(*drive, "seek");
        medium.access_time = operations > 0 ? seconds_to_time(1 / operations) : 0;
        medium.latency = get_duration(*drive, "latency", 0);
        medium.request_cost = get_parameter_duration(*drive, "request_cost", 0);
        medium.sorts_requests = is_rotating && !has_seek;
        const double usual_seek_s = operations > 0 ? 1 / operations : static_cast<double>(Defaults::hdd_seek_s);
        medium.seek = get_parameter_duration(*drive, "seek", is_rotating ? usual_seek_s : 0);
        const bool seeks_and_rotates = medium.seek > 0 && (has_seek || operations <= 0);
        medium.rotation = seeks_and_rotates ? get_parameter_duration(*drive, "rotation", rotation_s) : 0;
        medium.turnaround = get_parameter_duration(*drive, "turnaround", 0);
        medium.inner_rate_share = get_parameter(*drive, "inner_rate", get_text(*drive, "kind") == "hdd" ? 0.5 : 1.0);
        medium.drive_count = static_cast<std::uint32_t>(n);
    }
    medium.partial_stripe_cost = get_parameter_duration(group, "partial_stripe_cost", 0);
    medium.rebuild_share = get_parameter(group, "rebuild_share", medium.rebuild_share);
    medium.degraded_share = get_parameter(group, "degraded_share", medium.degraded_share);
    medium.noise = get_parameter(group, "noise", 0);
    medium.slowdown = get_parameter(group, "slowdown", 1);
    return medium;
}

/// Index of the medium below a device, which is added when it is new.
int get_medium_index(SystemModel& site, const SystemParts& system, const std::string& device) {
    const json& group = find_medium(system, system.get(device));
    const std::string id = get_text(group, "id");
    for (std::size_t i = 0; i < site.media.size(); ++i) {
        if (site.media[i].id == id) {
            return static_cast<int>(i);
        }
    }
    site.media.push_back(read_medium(system, group));
    return static_cast<int>(site.media.size()) - 1;
}

ServerDescription read_server(const json& server) {
    ServerDescription site;
    site.id = get_text(server, "id");
    site.rate = read_directed_rate(server);
    if (const double rate = get_parameter_rate(server, "rate", 0); rate > 0) {
        site.rate = {rate, rate};
    }
    site.threads = get_parameter_count(server, "threads", 0);
    site.request_cost = get_parameter_duration(server, "request_cost", 0);
    site.read_cache_bytes = get_parameter_bytes(server, "cache", 0);
    if (has_parameter(server, "cache_max_file")) {
        site.max_cached_file_bytes = get_parameter_bytes(server, "cache_max_file", 0);
    }
    const auto cost = [&server](const char* name) {
        return get_parameter_duration(server, name, static_cast<double>(Defaults::metadata_cost_s));
    };
    site.create = cost("create_cost");
    site.stat = cost("stat_cost");
    site.open = cost("open_cost");
    site.remove = cost("remove_cost");
    site.rename = cost("rename_cost");
    site.mkdir = cost("mkdir_cost");
    site.readdir = get_parameter_duration(server, "readdir_cost", Defaults::metadata_cost_s / 100);
    site.journal = get_parameter_duration(server, "journal_cost", 0);
    site.cached_stat = has_parameter(server, "cached_cost") ? get_parameter_duration(server, "cached_cost", 0) : -1;
    site.noise = get_parameter(server, "noise", 0);
    site.slowdown = get_parameter(server, "slowdown", 1);
    return site;
}

int get_server_index(SystemModel& site, const SystemParts& system, const std::string& id) {
    for (std::size_t i = 0; i < site.servers.size(); ++i) {
        if (site.servers[i].id == id) {
            return static_cast<int>(i);
        }
    }
    site.servers.push_back(read_server(system.get(id)));
    return static_cast<int>(site.servers.size()) - 1;
}

/// The rated peak of a unit or of the file system, divided by the number of its targets.
DirectedRate read_rated_peak(const SystemParts& system, const SystemModel& site, const std::string& target) {
    for (const json& unit : system.list("units")) {
        const std::vector<std::string> targets = get_texts(unit, "targets");
        if (std::find(targets.begin(), targets.end(), target) != targets.end() && unit.contains("peak")) {
            const DirectedRate peak = read_directed_rate(unit, "peak");
            const auto n = static_cast<double>(targets.size());
            return {peak.read / n, peak.write / n};
        }
    }
    const json& fs = system.get(site.file_system.id);
    if (!fs.contains("peak")) {
        return {};
    }
    double target_count = 0;
    for (const json& other : system.list("targets")) {
        target_count += get_text(other, "file_system") == site.file_system.id && holds_data(other) ? 1 : 0;
    }
    const DirectedRate peak = read_directed_rate(fs, "peak");
    return {peak.read / target_count, peak.write / target_count};
}

TargetDescription read_target(SystemModel& site, const SystemParts& system, const json& target) {
    TargetDescription target_site;
    target_site.id = get_text(target, "id");
    target_site.index_in_file_system = get_count(target, "index", 0);
    target_site.rate = read_directed_rate(target);
    if (const double rate = get_parameter_rate(target, "rate", 0); rate > 0) {
        target_site.rate = {rate, rate};
    }
    target_site.queue_depth = get_parameter_count(target, "queue_depth", 0);
    target_site.request_cost = get_parameter_duration(target, "request_cost", 0);
    target_site.writer_cost = get_parameter_duration(target, "writer_cost", 0);
    target_site.contention = get_parameter(target, "contention", 0);
    target_site.capacity_bytes = get_bytes(target, "capacity", 0);
    target_site.noise = get_parameter(target, "noise", 0);
    target_site.slowdown = get_parameter(target, "slowdown", 1);
    if (const std::string server = get_text(target, "server"); !server.empty()) {
        target_site.server = get_server_index(site, system, server);
    }
    if (const std::vector<std::string> on = get_texts(target, "on"); on.size() == 1) {
        target_site.medium = get_medium_index(site, system, on.front());
    }
    return target_site;
}

/// Sets the rate of a target: the first of these that is given: its own, that of its drives, the rated peak of its unit
/// or file system, the limit of its server or links. Throws SystemModelError when none is.
void resolve_rate(SystemModel& site, const SystemParts& system, TargetDescription& target) {
    const bool has_drive_rate =
        target.medium >= 0 && site.media[static_cast<std::size_t>(target.medium)].rate.write > 0;
    if (target.rate.write > 0 || has_drive_rate) {
        return;
    }
    target.rate = read_rated_peak(system, site, target.id);
    if (target.rate.write > 0) {
        return;
    }
    const bool has_server_rate =
        target.server >= 0 && site.servers[static_cast<std::size_t>(target.server)].rate.write > 0;
    if (has_server_rate) {
        site.assumptions.push_back("target " + target.id + " says no rate: only its server limits it");
        return;
    }
    if (!target.paths.empty()) {
        site.assumptions.push_back("target " + target.id + " says no rate: only the way to it limits it");
        return;
    }
    throw SystemModelError("system " + site.system + " does not say how fast target " + target.id +
                           " is: give it a rate, give its drives one, or give its unit or file system a peak");
}

/// Bytes that a device offers: the first stated of the size of a slice or LUN, the usable size or the data drives of a
/// RAID group, and the capacity of a drive; 0: unknown.
std::uint64_t find_capacity(const SystemParts& system, const std::string& device) {
    for (const json* part = system.find(device); part != nullptr;
         part = system.find(SystemParts::find_underlying_device(*part))) {
        for (const char* member : {"size", "usable", "capacity"}) {
            if (const std::uint64_t capacity = get_bytes(*part, member, 0); capacity > 0) {
                return capacity;
            }
        }
        std::size_t drive_count = 0;
        if (const json* drive = find_drive(system, *part, drive_count); drive != nullptr && drive_count > 1) {
            return get_bytes(*drive, "capacity", 0) * get_count(*part, "data", 1, 1);
        }
    }
    return 0;
}

void add_volume(SystemModel& site, const SystemParts& system, const std::string& device) {
    const json& volume = system.get(device);
    std::vector<std::string> members = get_texts(volume, "members");
    if (members.empty()) {
        members = {device};
        site.file_system.stripe_size = std::uint64_t{1} << 40U;  // not striped over targets
    } else {
        site.file_system.stripe_size = get_bytes(volume, "stripe_unit", 1U << 20U, 1);
    }
    site.file_system.stripe_count = -1;
    for (const std::string& member : members) {
        TargetDescription target;
        target.id = member;
        target.index_in_file_system = static_cast<std::uint32_t>(site.targets.size());
        target.medium = get_medium_index(site, system, member);
        // The LUN below limits the commands in its queue.
        for (const json* part = system.find(member); part != nullptr;) {
            target.queue_depth = std::max(target.queue_depth, get_count(*part, "queue_depth", 0));
            part = part->contains("on") ? system.find(get_text(*part, "on")) : nullptr;
        }
        target.capacity_bytes = find_capacity(system, member);
        site.targets.push_back(target);
    }
}

/// Sets the partner of each server that has one, which is added where it has no target.
void add_partners(SystemModel& site, const SystemParts& system) {
    const std::size_t server_count = site.servers.size();
    for (std::size_t i = 0; i < server_count; ++i) {
        const std::vector<std::string> partner = get_texts(system.get(site.servers[i].id), "partner");
        if (partner.size() == 1 && partner.front() != site.servers[i].id) {
            const int index = get_server_index(site, system, partner.front());
            site.servers[i].partner = index;
        }
    }
}

/// Without metadata targets (GPFS), the data servers with metadata costs serve metadata.
void use_data_servers_for_metadata(SystemModel& site, const SystemParts& system) {
    for (std::size_t i = 0; i < site.servers.size(); ++i) {
        const json& server = system.get(site.servers[i].id);
        if (has_parameter(server, "create_cost") || has_parameter(server, "stat_cost")) {
            site.metadata_servers.push_back(static_cast<int>(i));
        }
    }
}

}  // namespace

void add_storage(SystemModel& site, const SystemParts& system) {
    const std::string device = get_text(system.get(site.file_system.id), "device");
    if (!device.empty()) {
        add_volume(site, system, device);
    }
    for (const json& target : system.list("targets")) {
        if (get_text(target, "file_system") != site.file_system.id) {
            continue;
        }
        if (holds_data(target)) {
            site.targets.push_back(read_target(site, system, target));
        } else if (get_text(target, "kind") == "mdt" && !get_text(target, "server").empty()) {
            site.metadata_servers.push_back(get_server_index(site, system, get_text(target, "server")));
        }
    }
    if (site.targets.empty()) {
        throw SystemModelError("file system " + site.file_system.id + " of system " + site.system +
                               " has no targets and no device: describe where its data lies");
    }
    std::stable_sort(site.targets.begin(), site.targets.end(),
                     [](const TargetDescription& a, const TargetDescription& b) {
                         return a.index_in_file_system < b.index_in_file_system;
                     });
    if (device.empty()) {
        for (TargetDescription& target : site.targets) {
            resolve_rate(site, system, target);
        }
    }
    add_partners(site, system);
    if (site.metadata_servers.empty()) {
        use_data_servers_for_metadata(site, system);
    }
    if (site.metadata_servers.empty()) {
        ServerDescription metadata_server = read_server(json{{"id", site.file_system.id + "-names"}});
        if (site.file_system.is_local) {  // a call of the local kernel
            metadata_server.create = metadata_server.remove = metadata_server.rename = metadata_server.mkdir =
                metadata_server.stat = metadata_server.open = seconds_to_time(10e-6);
        }
        site.metadata_servers.push_back(static_cast<int>(site.servers.size()));
        site.servers.push_back(metadata_server);
        site.assumptions.push_back("no part says what operations on names cost: each takes " +
                                   std::to_string(metadata_server.create / 1000) + " us");
    }
    for (const int server : site.metadata_servers) {
        ServerDescription& metadata_server = site.servers[static_cast<std::size_t>(server)];
        metadata_server.threads = metadata_server.threads == 0 ? Defaults::metadata_threads : metadata_server.threads;
    }
}

}  // namespace sonde::simulate
