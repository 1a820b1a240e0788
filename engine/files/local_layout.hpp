// SPDX-License-Identifier: Apache-2.0
// Which drive holds which byte of a file of ext4 or XFS: its extents (FIEMAP) on the volume below, and the drives of
// that. What has no place yet lies nowhere; nothing is written back to find out.
#pragma once

#include "files/stripe_layout.hpp"
#include "records/volume.hpp"

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sonde::files {

/// Of a file: `length` bytes from `offset` lie at `place` of the device.
struct PlacedExtent {
    std::uint64_t offset = 0, place = 0, length = 0;
    bool placed = true;  ///< false: written, but without a place yet
};

/// The extents of the file at `path`, at most `most`, in order; none behind `size`. Nothing when the file system does
/// not tell them.
struct ExtentsOfFile {
    std::vector<PlacedExtent> extents;
    bool all = true;
};
std::optional<ExtentsOfFile> extents_of(const std::string& path, std::uint64_t size, std::size_t most);

/// Whether it takes the extents of a file to say which drive has a byte: false where one drive has them all, or nobody
/// can tell them apart.
bool divided(const records::Volume& volume);

/// The layout of a file of `size` bytes with these extents. Of a volume that is not divided it is one component.
StripeLayout local_layout(const records::Volume& volume, const ExtentsOfFile& extents);

/// What lies beneath the device of a file system; asked for once in a process, since it stays while that is mounted.
/// Null when nobody knows. May start a program (dmsetup) the first time.
std::shared_ptr<const records::Volume> volume_below(dev_t device);

/// A few milliseconds a file; one in more pieces says so.
constexpr std::size_t most_extents = 16'384;

/// The layout of the file at `path`; absent where the device or the extents are not known. At most `most` extents are
/// looked at.
std::optional<StripeLayout> layout_on_drives(const std::string& path, std::size_t most = most_extents);

}  // namespace sonde::files
