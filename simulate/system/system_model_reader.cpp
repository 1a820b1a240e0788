// SPDX-License-Identifier: Apache-2.0
#include "system/system_model_reader.hpp"

#include "system/link_descriptions.hpp"
#include "system/storage_descriptions.hpp"
#include "system/storage_links.hpp"
#include "system/system_parts.hpp"
#include "system/unused_numbers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace sonde::simulate {
namespace {

using nlohmann::json;

/// Bytes of read-ahead, at most, of one stream and of all streams of a node; 0 of all: no limit.
struct ReadAheadLimits {
    double stream = 0, total = 0;
};

/// Whether a version like "2.15.3" is at least `major`.`minor`. One that does not begin with two numbers is not.
bool is_version_from(const std::string& version, int major, int minor) {
    std::istringstream digits(version);
    int first = 0, second = 0;
    char dot = 0;
    digits >> first >> dot >> second;
    return !digits.fail() && dot == '.' && std::pair(first, second) >= std::pair(major, minor);
}

/// Defaults of the client software. Lustre takes them from the memory of the node since 2.14 (llite/llite_lib.c).
ReadAheadLimits default_read_ahead(const FileSystemDescription& fs, double memory) {
    if (fs.is_local) {
        return {static_cast<double>(Defaults::local_read_ahead_bytes), 0};
    }
    if (fs.kind != "lustre") {
        return {static_cast<double>(Defaults::read_ahead_bytes), 0};
    }
    if (!is_version_from(fs.version, 2, 14) || memory <= 0) {
        return {static_cast<double>(Defaults::read_ahead_bytes), static_cast<double>(Defaults::total_read_ahead_bytes)};
    }
    constexpr double mib = 1U << 20U;
    const double total = std::min(memory / 32, 1024 * mib);
    return {std::min(total / 4, 256 * mib), total};
}

ClientDescription read_client(const json& node, const FileSystemDescription& fs, bool& uses_default_cost) {
    ClientDescription client;
    client.id = get_text(node, "id");
    client.cores = get_count(node, "cores", 1);
    client.memory_bytes = get_bytes(node, "memory", 0);
    const double calls = get_parameter(node, "call_rate", 0);
    uses_default_cost = uses_default_cost || (calls <= 0 && !has_parameter(node, "call_cost"));
    client.call_cost =
        get_parameter_duration(node, "call_cost", calls > 0 ? 1 / calls : static_cast<double>(Defaults::call_cost_s));
    client.copy_rate = get_parameter_rate(node, "copy_rate", Defaults::copy_rate);
    const auto memory = static_cast<double>(client.memory_bytes);
    client.page_cache_bytes = get_parameter_bytes(node, "page_cache", memory * Defaults::page_cache_share);
    client.dirty_limit_bytes = get_parameter_bytes(node, "dirty_limit", memory * Defaults::dirty_share);
    client.dirty_bytes_per_target = get_parameter_bytes(
        node, "dirty_per_target", fs.is_local ? 0 : static_cast<double>(Defaults::dirty_bytes_per_target));
    const ReadAheadLimits read_ahead = default_read_ahead(fs, memory);
    client.read_ahead_bytes = get_parameter_bytes(node, "read_ahead", read_ahead.stream);
    client.total_read_ahead_bytes = get_parameter_bytes(node, "read_ahead_total", read_ahead.total);
    client.rpc_size = get_parameter_bytes(node, "rpc_size", static_cast<double>(Defaults::rpc_size), 1);
    client.rpcs_in_flight = get_parameter_count(node, "rpcs_in_flight", Defaults::rpcs_in_flight, 1);
    client.cached_names = get_parameter_count(node, "cached_names", 0);
    client.write_behind_rate = get_parameter_rate(node, "write_behind", 0);
    client.page_evict_cost = get_parameter_duration(node, "evict_cost", 0);
    client.slowdown = get_parameter(node, "slowdown", 1);
    return client;
}

/// The mount of that name, or that of a pool or file system. A file system without a mount is mounted on all nodes.
json find_mount(const SystemParts& system, const std::string& requested) {
    std::string name = requested;
    for (const json& pool : system.list("pools")) {
        if (get_text(pool, "id") == requested) {
            name = get_text(pool, "file_system");
        }
    }
    for (const json& mount : system.list("mounts")) {
        if (get_text(mount, "id") == name || (get_text(mount, "file_system") == name && !name.empty())) {
            return mount;
        }
    }
    for (const json& fs : system.list("file_systems")) {
        if (get_text(fs, "id") == name) {
            json nodes = json::array();
            for (const json& node : system.list("nodes")) {
                nodes.push_back(get_text(node, "id"));
            }
            return {{"id", name}, {"file_system", name}, {"on", nodes}};
        }
    }
    std::string mounts;
    for (const json& mount : system.list("mounts")) {
        mounts += (mounts.empty() ? "" : ", ") + get_text(mount, "id");
    }
    throw SystemModelError("system " + system.system_id() + " has no mount or file system \"" + name +
                           "\": its mounts are " + (mounts.empty() ? "none" : mounts));
}

std::string find_first_mount(const SystemParts& system) {
    for (const json& mount : system.list("mounts")) {
        const std::string fs = get_text(mount, "file_system");
        if (!get_text(system.get(fs), "device").empty()) {
            return get_text(mount, "id");
        }
        for (const json& target : system.list("targets")) {
            if (get_text(target, "file_system") == fs && holds_data(target)) {
                return get_text(mount, "id");
            }
        }
    }
    if (!system.list("file_systems").empty()) {
        return get_text(system.list("file_systems").front(), "id");
    }
    throw SystemModelError("system " + system.system_id() +
                           " has no file system to simulate: describe one with [[file_systems]] and [[targets]]");
}

FileSystemDescription read_file_system(const SystemParts& system, const std::string& id) {
    const json& fs = system.get(id);
    FileSystemDescription site;
    site.id = id;
    site.kind = get_text(fs, "kind");
    site.version = get_text(fs, "version");
    site.is_local = !get_text(fs, "device").empty();
    if (const auto stripe = fs.find("stripe"); stripe != fs.end()) {
        site.stripe_size = get_bytes(*stripe, "size", 1U << 20U, 1);
        site.stripe_count = static_cast<std::int64_t>(get_number(*stripe, "count", 1, -1, max_count));
    } else if (site.kind != "lustre") {
        site.stripe_count = -1;  // GPFS, BeeGFS and striped volumes use all targets for a file
    }
    site.used_share = get_number(fs, "used", 0);
    site.lock_cost = get_parameter_duration(fs, "lock_cost", 0);
    site.revoke_cost = get_parameter_duration(fs, "revoke_cost", 0);
    site.lock_unit_bytes = get_parameter_bytes(fs, "lock_unit", 0);
    site.cached_page_cost_s = get_parameter(fs, "cached_page_cost", 0);
    site.log_rate = get_text(fs, "log").empty() ? get_parameter_rate(fs, "log_rate", 0) : 0;
    site.layout_cost = get_parameter_duration(fs, "layout_cost", 0);
    return site;
}

/// Removes the targets outside of a requested pool.
void restrict_to_pool(SystemModel& site, const SystemParts& system, const std::string& requested) {
    for (const json& pool : system.list("pools")) {
        if (get_text(pool, "id") != requested) {
            continue;
        }
        const std::vector<std::string> members = get_texts(pool, "targets");
        std::erase_if(site.targets, [&members](const TargetDescription& target) {
            return std::find(members.begin(), members.end(), target.id) == members.end();
        });
        site.mount = requested;
        if (site.targets.empty()) {
            throw SystemModelError("pool " + requested + " of system " + site.system +
                                   " has no targets that hold data");
        }
    }
}

void add_clients(SystemModel& site, const SystemParts& system, const json& mount) {
    std::vector<std::string> on = get_texts(mount, "on");
    std::sort(on.begin(), on.end());
    bool uses_default_cost = false;
    const auto has_mount = [&on](const json& host) {
        return std::binary_search(on.begin(), on.end(), get_text(host, "id"));
    };
    for (const bool is_compute : {true, false}) {  // login nodes come last
        for (const json& node : system.list("nodes")) {
            if ((get_text(node, "role") == "compute") == is_compute && (on.empty() || has_mount(node))) {
                site.clients.push_back(read_client(node, site.file_system, uses_default_cost));
            }
        }
    }
    for (const json& router : system.list("routers")) {  // a router may have the mount too
        if (has_mount(router)) {
            site.clients.push_back(read_client(router, site.file_system, uses_default_cost));
        }
    }
    if (site.clients.empty()) {
        throw SystemModelError("mount " + site.mount + " of system " + site.system +
                               " is on no node of the system: name nodes in `on`");
    }
    if (uses_default_cost) {
        site.assumptions.push_back("the system file gives no call cost; " +
                                   std::to_string(static_cast<int>(Defaults::call_cost_s * 1e6)) + " us assumed");
    }
}

}  // namespace

SystemModel read_system_model(std::string_view resolved_json, const std::string& requested) {
    try {
        const SystemParts system(resolved_json);
        const json mount = find_mount(system, requested.empty() ? find_first_mount(system) : requested);
        SystemModel site;
        site.system = system.system_id();
        site.mount = get_text(mount, "id");
        site.file_system = read_file_system(system, get_text(mount, "file_system"));
        add_storage(site, system);
        restrict_to_pool(site, system, requested);
        add_clients(site, system, mount);
        add_links(site, system, mount);
        add_storage_links(site, system);
        add_unused_numbers(site, system);
        return site;
    } catch (const json::exception& error) {
        throw SystemModelError(std::string("the resolved system cannot be read: ") + error.what() +
                               "; make it again with `sonde simulate --system FILE`");
    }
}

std::string read_text_file(const std::string& path, const char* role) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) {
        throw SystemModelError(std::string(role) + " " + path + " cannot be read: " + std::strerror(errno));
    }
    return text.str();
}

}  // namespace sonde::simulate
