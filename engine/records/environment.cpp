// SPDX-License-Identifier: Apache-2.0
// Collects the facts of the record's `node` line from /proc; unknown facts are omitted.
#include "records/environment.hpp"

#include "records/block_device.hpp"
#include "records/cgroup.hpp"
#include "records/file_system.hpp"
#include "records/lustre_client.hpp"
#include "records/mounts.hpp"
#include "records/system_file.hpp"
#include "records/text.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

namespace sonde::records {

namespace {

using nlohmann::json;

/// Number of processors this process may run on. The fixed cpu_set_t covers only 1024 processors.
int count_usable_cpus() {
    for (std::size_t cpus = 1024; cpus <= 1U << 20U; cpus *= 4) {
        cpu_set_t* set = CPU_ALLOC(cpus);
        const std::size_t size = CPU_ALLOC_SIZE(cpus);
        const bool is_known = set != nullptr && ::sched_getaffinity(0, size, set) == 0;
        const int count = is_known ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (is_known) {
            return count;
        }
    }
    return 0;
}

/// The key is "model name" on x86 and "cpu" on Power; Arm kernels give numbers only.
std::string read_cpu_model() {
    const std::string text = read_system_file("/proc/cpuinfo");
    for (const std::string name : {"model name", "Hardware", "cpu", "CPU part"}) {
        for (std::size_t position = 0; position < text.size();) {
            const std::size_t end = std::min(text.find('\n', position), text.size());
            const std::string line = text.substr(position, end - position);
            position = end + 1;
            const std::size_t colon = line.find(':');
            const std::size_t word_end = colon == std::string::npos ? 0 : line.find_last_not_of(" \t", colon - 1) + 1;
            if (word_end != name.size() || line.compare(0, word_end, name) != 0 || colon + 2 > line.size()) {
                continue;
            }
            return (name == "CPU part" ? "Arm part " : "") + line.substr(colon + 2);
        }
    }
    return {};
}

void add_if_present(json& out, const char* name, const std::optional<std::uint64_t>& value) {
    if (value) {
        out[name] = *value;
    }
}

void add_if_nonzero(json& out, const char* name, std::uint64_t value) {
    if (value != 0) {
        out[name] = value;
    }
}

void add_processors(json& out) {
    if (const int cpus = count_usable_cpus(); cpus > 0) {
        out["cpus"] = cpus;
    }
    if (const long online = ::sysconf(_SC_NPROCESSORS_ONLN); online > 0) {
        out["cpus_online"] = online;
    }
    if (const std::string model = read_cpu_model(); !model.empty()) {
        out["cpu_model"] = to_json_text(model);
    }
}

void add_memory(json& out, const CgroupLimits& limits) {
    const std::string text = read_system_file("/proc/meminfo");
    out["memory_bytes"] = read_node_memory();
    add_if_present(out, "memory_physical_bytes", find_bytes(text, "MemTotal"));
    add_if_present(out, "memory_available_bytes", find_bytes(text, "MemAvailable"));
    add_if_present(out, "memory_limit_bytes", limits.memory_bytes);
    add_if_present(out, "swap_bytes", find_bytes(text, "SwapTotal"));
    add_if_present(out, "swap_free_bytes", find_bytes(text, "SwapFree"));
    out["page_bytes"] = ::sysconf(_SC_PAGESIZE);
    if (const auto huge = read_system_text("/sys/kernel/mm/transparent_hugepage/enabled")) {
        out["transparent_huge_pages"] = read_bracketed_choice(*huge);
    }
}

/// Limits of dirty pages, which decide how much of a write stays in memory.
json read_writeback() {
    const std::string folder = "/proc/sys/vm/dirty_";
    json out = json::object();
    add_if_present(out, "ratio_percent", read_system_number(folder + "ratio"));
    add_if_present(out, "background_ratio_percent", read_system_number(folder + "background_ratio"));
    // 0 means that the ratio applies.
    if (const auto bytes = read_system_number(folder + "bytes")) {
        add_if_nonzero(out, "limit_bytes", *bytes);
    }
    if (const auto bytes = read_system_number(folder + "background_bytes")) {
        add_if_nonzero(out, "background_limit_bytes", *bytes);
    }
    for (const auto& [file, name] :
         {std::pair{"expire_centisecs", "expire_s"}, std::pair{"writeback_centisecs", "interval_s"}}) {
        if (const auto hundredths = read_system_number(folder + file)) {
            out[name] = static_cast<double>(*hundredths) / 100;
        }
    }
    return out;
}

json read_user_limits() {
    json out = json::object();
    for (const auto& [resource, name] :
         {std::pair{RLIMIT_NOFILE, "open_files"}, std::pair{RLIMIT_MEMLOCK, "locked_memory_bytes"},
          std::pair{RLIMIT_FSIZE, "file_size_bytes"}}) {
        rlimit limit{};
        if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
            out[name] = limit.rlim_cur;
        }
    }
    return out;
}

json describe_file_system_facts(const std::string& directory) {
    const FileSystem system = describe_file_system(directory);
    json out = json::object();
    add_if_nonzero(out, "stripe_unit_bytes", system.stripe_unit_bytes);
    add_if_nonzero(out, "stripe_width_bytes", system.stripe_width_bytes);
    for (const auto& [name, value] : {std::pair{"type", &system.type}, std::pair{"mount_point", &system.mount_point},
                                      std::pair{"source", &system.source}, std::pair{"options", &system.options}}) {
        if (!value->empty()) {
            out[name] = to_json_text(*value);
        }
    }
    if (!system.root.empty() && system.root != "/") {
        out["root"] = to_json_text(system.root);
    }
    // Versions of file systems in separate modules, such as beegfs and zfs; the module of GPFS is mmfs26.
    const std::string kernel_module = system.type == "gpfs" ? "mmfs26" : system.type;
    if (const auto version = system.type.empty() || system.type.find('/') != std::string::npos
                                 ? std::nullopt
                                 : read_system_text("/sys/module/" + kernel_module + "/version")) {
        out["client_version"] = to_json_text(*version);
    }
    add_if_nonzero(out, "block_bytes", system.block_bytes);
    add_if_nonzero(out, "preferred_io_bytes", system.preferred_io_bytes);
    if (system.total_bytes != 0) {
        out["total_bytes"] = system.total_bytes;
        out["free_bytes"] = system.free_bytes;
        out["available_bytes"] = system.available_bytes;
    }
    // Some file systems allocate inodes on demand and report none.
    if (system.inodes_total != 0) {
        out["inodes_total"] = system.inodes_total;
        out["inodes_free"] = system.inodes_free;
    }
    add_if_nonzero(out, "direct_memory_align_bytes", system.direct_memory_align);
    add_if_nonzero(out, "direct_offset_align_bytes", system.direct_offset_align);
    out["read_only"] = system.read_only;
    out["network"] = system.network;
    out["memory_backed"] = system.memory_backed;
    if (json device = describe_block_device_of_mount(system.device, system.source); !device.is_null()) {
        out["block_device"] = std::move(device);
    }
    return out;
}

}  // namespace

std::uint64_t read_node_memory() {
    std::uint64_t bytes = find_bytes(read_system_file("/proc/meminfo"), "MemTotal").value_or(0);
    if (bytes == 0) {
        bytes =
            static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }
    const auto limit = read_cgroup_limits().memory_bytes;
    return limit ? std::min(bytes, *limit) : bytes;
}

json describe_node(const std::string& directory) {
    json out{{"type", "node"}};
    utsname name{};
    if (::uname(&name) == 0) {
        out["host"] = to_json_text(name.nodename);
        out["kernel"] = to_json_text(std::string(name.sysname) + " " + name.release);
        out["architecture"] = to_json_text(name.machine);
    }
    const CgroupLimits limits = read_cgroup_limits();
    add_processors(out);
    if (limits.cpus) {
        out["cpu_quota"] = *limits.cpus;
    }
    add_memory(out, limits);
    double load = 0;
    if (::getloadavg(&load, 1) == 1) {
        out["load_1m"] = load;
    }
    out["writeback"] = read_writeback();
    out["limits"] = read_user_limits();
    out["file_system"] = describe_file_system_facts(directory);
    const json& under = out["file_system"];
    const bool lustre = under.value("type", "") == "lustre";
    if (lustre || is_lustre_pretended()) {
        json client = describe_lustre_client(lustre ? parse_lustre_name(under.value("source", "")) : std::string());
        if (!client.empty()) {
            out["lustre"] = std::move(client);
        }
    }
    return out;
}

std::string format_utc_now() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    std::tm parts{};
    gmtime_r(&now.tv_sec, &parts);
    std::array<char, 32> seconds{};
    std::strftime(seconds.data(), seconds.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::array<char, 16> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%06uZ", static_cast<unsigned>(now.tv_nsec / 1000) % 1'000'000U);
    return std::string(seconds.data()) + fraction.data();
}

json engine_version() {
    return {{"version", SONDE_VERSION}, {"compiler", SONDE_COMPILER}, {"build_type", SONDE_BUILD_TYPE}};
}

}  // namespace sonde::records
