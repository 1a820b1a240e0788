// SPDX-License-Identifier: Apache-2.0
// The mount table of this process, and the mount of a path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::records {

/// One line of /proc/self/mountinfo, octal escapes undone.
struct Mount {
    int id = 0, parent = 0;
    std::string device;  ///< "major:minor" of the file system
    std::string root;  ///< the part of the file system that is mounted: "/" = all of it, else a bind mount or subvolume
    std::string point;
    std::string options;  ///< of the mount and of the file system, without duplicates
    std::string type;
    std::string source;
    bool read_only = false;
};

/// Malformed lines are skipped.
std::vector<Mount> parse_mounts(std::string_view mountinfo);

/// The mount of an absolute path without symbolic links or dots, resolved like the kernel does: from the root mount
/// along the path, at each step to the mount on top. Hidden mounts are never returned.
std::optional<Mount> find_mount(const std::vector<Mount>& mounts, const std::string& path);

/// The current mount of an existing path. Uses the mount id of statx() where available (Linux 5.8).
std::optional<Mount> find_mount(const std::string& path);

/// `a=b` in a comma-separated list of options; nothing when absent.
std::optional<std::string> find_mount_option(const std::string& options, std::string_view name);

/// Stripe sizes from mount options; 0 = unknown.
struct MountStripes {
    std::uint64_t unit_bytes = 0, width_bytes = 0;
};

/// XFS counts sunit and swidth in sectors of 512 B, ext4 stripe in blocks of the file system.
MountStripes parse_mount_stripes(const std::string& type, const std::string& options, std::uint64_t block_bytes);

/// Members of statx(2) that older C libraries lack; 0 = not reported.
struct ExtendedStatus {
    std::uint64_t mount_id = 0;
    std::uint32_t direct_memory_align = 0, direct_offset_align = 0;  ///< bytes; regular files only
};
/// Of an open file, or of `path` when descriptor is AT_FDCWD.
ExtendedStatus read_extended_status(int descriptor, const std::string& path);

}  // namespace sonde::records
