// SPDX-License-Identifier: Apache-2.0
// The file system of a path: type, free space, requirements of direct I/O.
#pragma once

#include <cstdint>
#include <string>

namespace sonde::records {

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
    std::uint64_t stripe_unit_bytes = 0, stripe_width_bytes = 0;     ///< from the mount options; 0 = unknown
    std::uint32_t direct_memory_align = 0, direct_offset_align = 0;  ///< 0 = unknown or not supported (statx)
    bool read_only = false;
    bool network = false;        ///< known network or parallel file system
    bool memory_backed = false;  ///< tmpfs, ramfs
};

/// Facts that the kernel does not provide keep their defaults. Does not throw for them.
FileSystem describe_file_system(const std::string& path);

}  // namespace sonde::records
