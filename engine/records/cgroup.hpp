// SPDX-License-Identifier: Apache-2.0
// Limits of the control groups of this process, for example of a container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sonde::records {

/// The tightest limit between this process's group and the root; empty = no limit.
struct CgroupLimits {
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t> memory_used_bytes;   ///< of the group that sets memory_bytes
    std::optional<std::uint64_t> memory_cache_bytes;  ///< part of it that is page cache, which can be reclaimed
    std::optional<double> cpus;                       ///< number of processors by time (quota / period)
};

/// Version 1 and version 2 hierarchies, also mixed. `system_root` is put before /proc and all mount points.
CgroupLimits read_cgroup_limits(const std::string& system_root = "");

}  // namespace sonde::records
