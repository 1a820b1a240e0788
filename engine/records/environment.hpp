// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and the file system, without which a number means nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::records {

/// The `node` line of the record (schema/record) without `node` and the clock members. Facts that cannot be had are
/// left out, never guessed. `directory` must exist.
nlohmann::json describe_node(const std::string& directory);

/// The file system that holds a path.
struct FileSystem {
    std::string type;  ///< "ext4", "xfs", "lustre", … as the kernel names it
    std::string mount_point, source, options;
    std::string root;  ///< the part of the file system that is mounted: "/" = all of it, else a bind mount or subvolume
    std::string device;  ///< "major:minor"; anonymous (0:n) where there is no single block device
    std::uint64_t block_bytes = 0;
    std::uint64_t preferred_io_bytes = 0;                                ///< st_blksize
    std::uint64_t total_bytes = 0, free_bytes = 0, available_bytes = 0;  ///< available: to this user
    std::uint64_t inodes_total = 0, inodes_free = 0;
    std::uint32_t direct_memory_align = 0, direct_offset_align = 0;  ///< 0 = unknown or not supported (statx)
    bool read_only = false;
    bool network = false;        ///< known network or parallel file system
    bool memory_backed = false;  ///< tmpfs, ramfs
};
FileSystem describe_file_system(const std::string& path);

/// Physical memory of this node in bytes, cut to the cgroup's limit when there is one.
std::uint64_t node_memory_bytes();

/// Engine version ("0.1.0") and how it was built (compiler, type).
nlohmann::json engine_version();

}  // namespace sonde::records
