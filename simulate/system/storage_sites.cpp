// SPDX-License-Identifier: Apache-2.0
#include "system/storage_sites.hpp"

#include <algorithm>
#include <map>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// From a slice, LUN or volume with one member down to the RAID group or drive that holds it.
const json& medium_below(const Parts& system, const json& device) {
    const std::string below = Parts::below(device);
    // It is a part of the system. NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter)
    return below.empty() ? device : medium_below(system, system.named(below));
}

/// Drives of a RAID group that say how fast they are, or none.
const json* drive_of(const Parts& system, const json& medium, std::size_t& count) {
    const std::vector<std::string> drives = texts(medium, "drives");
    count = drives.size();
    const json* one = drives.empty() ? nullptr : system.sought(drives.front());
    if (one == nullptr && medium.contains("capacity") && !medium.contains("level")) {
        count = 1;
        return &medium;  // a drive without a RAID
    }
    return one;
}

MediumSite medium_of(const Parts& system, const json& group) {
    MediumSite medium;
    medium.id = text(group, "id");
    medium.data = count(group, "data", 1, 1);
    const double parity = count(group, "parity", 0);
    const std::string level = text(group, "level");
    const bool mirror = level == "1" || level == "10";
    medium.parity = parity > 0 && !mirror;
    medium.segment = bytes(group, "segment", 0);
    std::size_t drives = 0;
    if (const json* drive = drive_of(system, group, drives)) {
        const DirectedRate one = rate_of(*drive);
        const double all = static_cast<double>(medium.data) + parity;
        const double n = std::max(static_cast<double>(drives), 1.0);
        // Each byte of data costs (data + parity) / data bytes on the drives; a copy may be read from either.
        medium.rate = {one.read * n * (mirror ? 1 : medium.data / all), one.write * n * medium.data / all};
        const double turn = number(*drive, "rpm", 0) > 0 ? 60 / number(*drive, "rpm", 0) : 0;
        const bool spins = text(*drive, "kind") == "hdd";
        medium.elevator = spins && !has_parameter(*drive, "seek");
        medium.seek = parameter_duration(*drive, "seek", spins ? static_cast<double>(Defaults::hdd_seek_s) : 0);
        medium.rotation = medium.seek > 0 ? parameter_duration(*drive, "rotation", turn) : 0;
        medium.turnaround = parameter_duration(*drive, "turnaround", 0);
        medium.inner_rate = parameter(*drive, "inner_rate", text(*drive, "kind") == "hdd" ? 0.5 : 1.0);
        medium.drives = static_cast<std::uint32_t>(n);
    }
    medium.partial_stripe_cost = parameter_duration(group, "partial_stripe_cost", 0);
    medium.rebuild_share = parameter(group, "rebuild_share", medium.rebuild_share);
    medium.degraded_share = parameter(group, "degraded_share", medium.degraded_share);
    medium.noise = parameter(group, "noise", 0);
    medium.slowdown = parameter(group, "slowdown", 1);
    return medium;
}

/// Adds the medium below a device once; its index.
int medium_index(SiteModel& site, const Parts& system, const std::string& device) {
    const json& group = medium_below(system, system.named(device));
    const std::string id = text(group, "id");
    for (std::size_t i = 0; i < site.media.size(); ++i) {
        if (site.media[i].id == id) {
            return static_cast<int>(i);
        }
    }
    site.media.push_back(medium_of(system, group));
    return static_cast<int>(site.media.size()) - 1;
}

ServerSite server_of(const json& server) {
    ServerSite site;
    site.id = text(server, "id");
    site.rate = rate_of(server);
    if (const double rate = parameter_rate(server, "rate", 0); rate > 0) {
        site.rate = {rate, rate};
    }
    site.threads = parameter_count(server, "threads", 0);
    site.request_cost = parameter_duration(server, "request_cost", 0);
    site.cache = parameter_bytes(server, "cache", 0);
    if (has_parameter(server, "cache_max_file")) {
        site.cache_max_file = parameter_bytes(server, "cache_max_file", 0);
    }
    const auto cost = [&server](const char* name) {
        return parameter_duration(server, name, static_cast<double>(Defaults::metadata_cost_s));
    };
    site.create = cost("create_cost");
    site.stat = cost("stat_cost");
    site.open = cost("open_cost");
    site.remove = cost("remove_cost");
    site.rename = cost("rename_cost");
    site.mkdir = cost("mkdir_cost");
    site.readdir = parameter_duration(server, "readdir_cost", Defaults::metadata_cost_s / 100);
    site.journal = parameter_duration(server, "journal_cost", 0);
    site.cached = has_parameter(server, "cached_cost") ? parameter_duration(server, "cached_cost", 0) : -1;
    site.noise = parameter(server, "noise", 0);
    site.slowdown = parameter(server, "slowdown", 1);
    return site;
}

int server_index(SiteModel& site, const Parts& system, const std::string& id) {
    for (std::size_t i = 0; i < site.servers.size(); ++i) {
        if (site.servers[i].id == id) {
            return static_cast<int>(i);
        }
    }
    site.servers.push_back(server_of(system.named(id)));
    return static_cast<int>(site.servers.size()) - 1;
}

/// What is promised for a unit or the whole file system, by each of its targets.
DirectedRate promised(const Parts& system, const SiteModel& site, const std::string& target) {
    for (const json& unit : system.list("units")) {
        const std::vector<std::string> targets = texts(unit, "targets");
        if (std::find(targets.begin(), targets.end(), target) != targets.end() && unit.contains("peak")) {
            const DirectedRate peak = rate_of(unit, "peak");
            const auto n = static_cast<double>(targets.size());
            return {peak.read / n, peak.write / n};
        }
    }
    const json& fs = system.named(site.fs.id);
    if (!fs.contains("peak")) {
        return {};
    }
    double targets = 0;
    for (const json& other : system.list("targets")) {
        targets += text(other, "file_system") == site.fs.id && holds_data(other) ? 1 : 0;
    }
    const DirectedRate peak = rate_of(fs, "peak");
    return {peak.read / targets, peak.write / targets};
}

TargetSite target_of(SiteModel& site, const Parts& system, const json& target) {
    TargetSite one;
    one.id = text(target, "id");
    one.index = count(target, "index", 0);
    one.rate = rate_of(target);
    if (const double rate = parameter_rate(target, "rate", 0); rate > 0) {
        one.rate = {rate, rate};
    }
    one.queue_depth = parameter_count(target, "queue_depth", 0);
    one.request_cost = parameter_duration(target, "request_cost", 0);
    one.writer_cost = parameter_duration(target, "writer_cost", 0);
    one.contention = parameter(target, "contention", 0);
    one.capacity = bytes(target, "capacity", 0);
    one.noise = parameter(target, "noise", 0);
    one.slowdown = parameter(target, "slowdown", 1);
    if (const std::string server = text(target, "server"); !server.empty()) {
        one.server = server_index(site, system, server);
    }
    if (const std::vector<std::string> on = texts(target, "on"); on.size() == 1) {
        one.medium = medium_index(site, system, on.front());
    }
    return one;
}

/// A target knows its rate from itself, its drives, what its unit promises, or the limit of its server.
void settle_rate(SiteModel& site, const Parts& system, TargetSite& target) {
    const bool medium = target.medium >= 0 && site.media[static_cast<std::size_t>(target.medium)].rate.write > 0;
    if (target.rate.write > 0 || medium) {
        return;
    }
    target.rate = promised(system, site, target.id);
    if (target.rate.write > 0) {
        return;
    }
    const bool server = target.server >= 0 && site.servers[static_cast<std::size_t>(target.server)].rate.write > 0;
    if (server) {
        site.assumptions.push_back("target " + target.id + " says no rate: only its server limits it");
        return;
    }
    if (!target.paths.empty()) {
        site.assumptions.push_back("target " + target.id + " says no rate: only the way to it limits it");
        return;
    }
    throw SiteError("system " + site.system + " does not say how fast target " + target.id +
                    " is: give it a rate, give its drives one, or give its unit or file system a peak");
}

void add_volume(SiteModel& site, const Parts& system, const std::string& device) {
    const json& volume = system.named(device);
    std::vector<std::string> members = texts(volume, "members");
    if (members.empty()) {
        members = {device};
        site.fs.stripe_size = std::uint64_t{1} << 40U;  // in one piece: only the drives below have stripes
    } else {
        site.fs.stripe_size = bytes(volume, "stripe_unit", 1U << 20U, 1);
    }
    site.fs.stripe_count = -1;
    for (const std::string& member : members) {
        TargetSite target;
        target.id = member;
        target.index = static_cast<std::uint32_t>(site.targets.size());
        target.medium = medium_index(site, system, member);
        // The LUN on the way says how many commands it takes.
        for (const json* part = system.sought(member); part != nullptr;) {
            target.queue_depth = std::max(target.queue_depth, count(*part, "queue_depth", 0));
            target.capacity = bytes(*part, "capacity", 0);
            part = part->contains("on") ? system.sought(text(*part, "on")) : nullptr;
        }
        site.targets.push_back(target);
    }
}

/// Where no target is for names alone (GPFS), the servers of the data that say what operations on names cost them.
void add_serving_names(SiteModel& site, const Parts& system) {
    for (std::size_t i = 0; i < site.servers.size(); ++i) {
        const json& server = system.named(site.servers[i].id);
        if (has_parameter(server, "create_cost") || has_parameter(server, "stat_cost")) {
            site.metadata_servers.push_back(static_cast<int>(i));
        }
    }
}

}  // namespace

void add_storage(SiteModel& site, const Parts& system) {
    const std::string device = text(system.named(site.fs.id), "device");
    if (!device.empty()) {
        add_volume(site, system, device);
    }
    for (const json& target : system.list("targets")) {
        if (text(target, "file_system") != site.fs.id) {
            continue;
        }
        if (holds_data(target)) {
            site.targets.push_back(target_of(site, system, target));
        } else if (text(target, "kind") == "mdt" && !text(target, "server").empty()) {
            site.metadata_servers.push_back(server_index(site, system, text(target, "server")));
        }
    }
    if (site.targets.empty()) {
        throw SiteError("file system " + site.fs.id + " of system " + site.system +
                        " has no targets and no device: describe where its data lies");
    }
    std::stable_sort(site.targets.begin(), site.targets.end(),
                     [](const TargetSite& a, const TargetSite& b) { return a.index < b.index; });
    if (device.empty()) {
        for (TargetSite& target : site.targets) {
            settle_rate(site, system, target);
        }
    }
    if (site.metadata_servers.empty()) {
        add_serving_names(site, system);
    }
    if (site.metadata_servers.empty()) {
        ServerSite names = server_of(json{{"id", site.fs.id + "-names"}});
        if (site.fs.local) {  // a call of the node's own kernel
            names.create = names.remove = names.rename = names.mkdir = names.stat = names.open = time_of(10e-6);
        }
        site.metadata_servers.push_back(static_cast<int>(site.servers.size()));
        site.servers.push_back(names);
        site.assumptions.push_back("no part says what operations on names cost: each takes " +
                                   std::to_string(names.create / 1000) + " us");
    }
    for (const int server : site.metadata_servers) {
        ServerSite& names = site.servers[static_cast<std::size_t>(server)];
        names.threads = names.threads == 0 ? Defaults::metadata_threads : names.threads;
    }
}

}  // namespace sonde::simulate
