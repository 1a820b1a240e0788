// SPDX-License-Identifier: Apache-2.0
// The content type of a block device, as libblkid recognizes it.
#pragma once

#include <string>

namespace sonde::runs {

/// The first signature on an open block device, with an article: "a file system (ext4)", "a partition table (gpt)", "a
/// member of a RAID (linux_raid_member)". Empty when libblkid recognizes nothing. Throws std::runtime_error with one
/// sentence when libblkid.so.1 cannot be loaded or the device cannot be read.
std::string find_device_signature(int descriptor);

}  // namespace sonde::runs
