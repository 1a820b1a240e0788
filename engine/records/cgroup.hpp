// SPDX-License-Identifier: Apache-2.0
// What the control groups of this process allow: a container's memory and processors are those of its group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sonde::records {

/// The tightest limit on the way from this process's group to the root; nothing = no limit.
struct CgroupLimits {
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t> memory_used_bytes;   ///< of the group that sets memory_bytes
    std::optional<std::uint64_t> memory_cache_bytes;  ///< part of it that is page cache, so that it can be had back
    std::optional<double> cpus;                       ///< processors' worth of time (quota / period)
};

/// Version 1 and version 2 hierarchies, also mixed. `system_root` is put before /proc and all mount points.
CgroupLimits cgroup_limits(const std::string& system_root = "");

}  // namespace sonde::records
