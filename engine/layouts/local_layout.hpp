// SPDX-License-Identifier: Apache-2.0
// Which drive holds which byte of a file of ext4 or XFS: its extents (FIEMAP, filesystems/fiemap.rst of the kernel's
// Documentation) on the volume below, and the drives of the volume. Bytes that are not placed yet have no drive;
// nothing is written back to find out.
#pragma once

#include "layouts/stripe_layout.hpp"
#include "records/volume.hpp"

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sonde::layouts {

/// `length` bytes from `offset` of a file lie at byte `position` of the device.
struct FileExtent {
    std::uint64_t offset = 0, position = 0, length = 0;
    bool has_position = true;  ///< false: written, but not yet placed
};

struct ExtentList {
    std::vector<FileExtent> extents;
    bool is_complete = true;  ///< false: the file has more
};
/// The extents of the file at `path` below `size` bytes, at most `max_count`, in order; absent when the file system
/// does not report them.
std::optional<ExtentList> read_extents(const std::string& path, std::uint64_t size, std::size_t max_count);

/// Returns whether the extents of a file determine which drive holds a byte: false where one drive holds all bytes, or
/// where drives cannot be distinguished.
bool has_several_parts(const records::Volume& volume);

/// The layout of a file with these extents; one component when the volume has one part.
StripeLayout make_local_layout(const records::Volume& volume, const ExtentList& extents);

/// The volume of a device; read once a process, since it does not change while the file system is mounted. nullptr when
/// unknown. The first call may start a program (dmsetup).
std::shared_ptr<const records::Volume> find_volume(dev_t device);

/// Limits the time to a few milliseconds a file.
constexpr std::size_t max_extents = 16'384;

/// The layout of the file at `path` from at most `extent_limit` extents; absent where the device or the extents are
/// unknown.
std::optional<StripeLayout> read_local_layout(const std::string& path, std::size_t extent_limit = max_extents);

}  // namespace sonde::layouts
