// SPDX-License-Identifier: Apache-2.0
// Which drives hold which bytes of a block device: partitions, RAID of md and the device mapper (LVM) down to what has
// nothing below it. Knows sysfs and the tables of `dmsetup`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sonde::records {

/// The bytes [start, end) of a block device. With a `stripe` the byte at `at` lies on
/// `drives[(at + shift) / stripe % drives.size()]`; without one all lie on the one drive, or on several in an order
/// that nobody tells (parity, copies, allocation on demand).
struct VolumePiece {
    std::uint64_t start = 0, end = ~0ULL;
    std::uint64_t stripe = 0;  ///< bytes
    std::uint64_t shift = 0;   ///< bytes, less than a turn
    std::vector<std::string> drives;
};

struct Volume {
    std::string name;                 ///< "sda3", "md0", "vg0-scratch"
    std::vector<VolumePiece> pieces;  ///< one behind the other
    /// Each once, in the order of the pieces. A partition of a drive stands for it: "sda3".
    std::vector<std::string> drives() const;
};

/// The table of a device of the mapper with this name, as `dmsetup table NAME` prints it; empty when it is not told.
using MapperTable = std::function<std::string(const std::string& name)>;

/// What lies beneath the device "major:minor"; nothing when sysfs does not know it. Of a mapper whose table is not told
/// only the drives are known. `system_root` is put before /sys.
std::optional<Volume> volume_of(const std::string& device, const MapperTable& table,
                                const std::string& system_root = "");

/// Asks `dmsetup`, which answers root.
std::string mapper_table(const std::string& name);

}  // namespace sonde::records
