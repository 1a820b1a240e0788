// SPDX-License-Identifier: Apache-2.0
// The mount table of this process and which of its mounts holds a path.
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
    std::string options;  ///< of the mount and of the file system, joined, without repetitions
    std::string type;
    std::string source;
    bool read_only = false;
};

/// Lines that are not understood are skipped.
std::vector<Mount> parse_mounts(std::string_view mountinfo);

/// The mount that holds an absolute path without symbolic links or dots, found as the kernel finds it: from the root
/// mount along the path, at each step onto the mount that covers it. A mount that is hidden by a later one over a
/// directory above it is therefore never chosen.
std::optional<Mount> mount_of(const std::vector<Mount>& mounts, const std::string& path);

/// The mount that holds an existing path now. Asks the kernel for the mount's number where it can (Linux 5.8).
std::optional<Mount> mount_of(const std::string& path);

/// `a=b` in a comma-separated list of options; nothing when it is not there.
std::optional<std::string> mount_option(const std::string& options, std::string_view name);

/// What mount options tell of the stripes below a file system; 0 = they do not.
struct Stripes {
    std::uint64_t unit_bytes = 0, width_bytes = 0;
};

/// XFS counts sunit and swidth in sectors of 512 B, ext4 stripe in blocks of the file system.
Stripes stripes_of(const std::string& type, const std::string& options, std::uint64_t block_bytes);

/// What statx(2) says that older C libraries have no members for; 0 = not said.
struct ExtendedStatus {
    std::uint64_t mount_id = 0;
    std::uint32_t direct_memory_align = 0, direct_offset_align = 0;  ///< bytes; regular files only
};
/// Of an open file, or of `path` when descriptor is AT_FDCWD.
ExtendedStatus extended_status(int descriptor, const std::string& path);

}  // namespace sonde::records
