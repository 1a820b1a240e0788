// SPDX-License-Identifier: Apache-2.0
// Reads the files of cgroups v1 and v2 (cgroups(7)).
#include "records/cgroup.hpp"

#include "records/mounts.hpp"
#include "records/system_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace sonde::records {

namespace {

bool list_contains(std::string_view list, std::string_view key) {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        if (list.substr(0, end) == key) {
            return true;
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
}

/// Path of this process's group in the hierarchy of a v1 controller, or in v2's when `controller` is empty.
std::optional<std::string> find_group_path(std::string_view table, std::string_view controller) {
    for (std::size_t position = 0; position < table.size();) {
        const std::size_t end = std::min(table.find('\n', position), table.size());
        const std::string_view line = table.substr(position, end - position);
        position = end + 1;
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) {
            continue;
        }
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        if (controller.empty() ? controllers.empty() : list_contains(controllers, controller)) {
            return std::string(line.substr(second + 1));
        }
    }
    return std::nullopt;
}

/// Directories from the process's group up to the mount point, as visible to this process.
std::vector<std::string> list_folders(const std::string& system_root, const Mount& mount, std::string path) {
    // In a container the mount shows only a part of the hierarchy.
    if (mount.root != "/") {
        const bool below = path.compare(0, mount.root.size(), mount.root) == 0 &&
                           (path.size() == mount.root.size() || path[mount.root.size()] == '/');
        path = below ? path.substr(mount.root.size()) : std::string();
    }
    if (path == "/" || path.compare(0, 3, "/..") == 0) {
        path.clear();
    }
    std::vector<std::string> all;
    for (;;) {
        all.push_back(system_root + mount.point + path);
        if (path.empty()) {
            return all;
        }
        path.resize(path.rfind('/'));
    }
}

/// Lines of memory.stat are "name value".
std::uint64_t read_statistic(std::string_view text, const std::string& name) {
    const std::string key = name + " ";
    std::size_t position = text.compare(0, key.size(), key) == 0 ? 0 : text.find("\n" + key);
    if (position == std::string_view::npos) {
        return 0;
    }
    position += text[position] == '\n' ? 1 : 0;
    return std::strtoull(std::string(text.substr(position + key.size(), 24)).c_str(), nullptr, 10);
}

/// `prefix`: v1 counts a group with all below it as total_*.
std::uint64_t read_cached_bytes(const std::string& folder, const std::string& prefix) {
    const std::string text = read_system_file(folder + "/memory.stat");
    return read_statistic(text, prefix + "inactive_file") + read_statistic(text, prefix + "active_file");
}

struct MemoryFiles {
    const char *limit, *use, *prefix;
};
constexpr MemoryFiles memory_v1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"};
constexpr MemoryFiles memory_v2{"/memory.max", "/memory.current", ""};

void tighten_memory(CgroupLimits& limits, const std::string& folder, const MemoryFiles& files) {
    const auto limit = read_system_number(folder + files.limit);
    // v1 writes "no limit" as the largest multiple of a page.
    constexpr std::uint64_t unlimited = 1ULL << 62U;
    if (!limit || *limit >= unlimited || (limits.memory_bytes && *limits.memory_bytes <= *limit)) {
        return;
    }
    limits.memory_bytes = limit;
    limits.memory_used_bytes = read_system_number(folder + files.use);
    limits.memory_cache_bytes = read_cached_bytes(folder, files.prefix);
}

void tighten_cpus(CgroupLimits& limits, double quota, double period) {
    if (quota <= 0 || period <= 0) {
        return;
    }
    const double cpus = quota / period;
    limits.cpus = limits.cpus ? std::min(*limits.cpus, cpus) : cpus;
}

void read_version_2(CgroupLimits& limits, const std::string& folder) {
    tighten_memory(limits, folder, memory_v2);
    // "max 100000" or "quota period"
    const std::string text = read_system_file(folder + "/cpu.max");
    char* end = nullptr;
    const double quota = std::strtod(text.c_str(), &end);
    tighten_cpus(limits, quota, std::strtod(end, nullptr));
}

void read_cpu_version_1(CgroupLimits& limits, const std::string& folder) {
    // An unlimited quota is -1, which is no unsigned number.
    const auto quota = read_system_number(folder + "/cpu.cfs_quota_us");
    const auto period = read_system_number(folder + "/cpu.cfs_period_us");
    if (quota && period) {
        tighten_cpus(limits, static_cast<double>(*quota), static_cast<double>(*period));
    }
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& system_root) {
    CgroupLimits limits;
    const std::string table = read_system_file(system_root + "/proc/self/cgroup");
    for (const Mount& mount : parse_mounts(read_system_file(system_root + "/proc/self/mountinfo"))) {
        if (mount.type == "cgroup2") {
            if (const auto path = find_group_path(table, "")) {
                for (const std::string& folder : list_folders(system_root, mount, *path)) {
                    read_version_2(limits, folder);
                }
            }
        } else if (mount.type == "cgroup" && list_contains(mount.options, "memory")) {
            if (const auto path = find_group_path(table, "memory")) {
                for (const std::string& folder : list_folders(system_root, mount, *path)) {
                    tighten_memory(limits, folder, memory_v1);
                }
            }
        }
        if (mount.type == "cgroup" && list_contains(mount.options, "cpu")) {
            if (const auto path = find_group_path(table, "cpu")) {
                for (const std::string& folder : list_folders(system_root, mount, *path)) {
                    read_cpu_version_1(limits, folder);
                }
            }
        }
    }
    return limits;
}

}  // namespace sonde::records
