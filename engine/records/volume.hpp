// SPDX-License-Identifier: Apache-2.0
// Maps the bytes of a block device to drives, through partitions, md RAID and the device mapper (LVM). Reads sysfs and
// the tables of `dmsetup`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sonde::records {

/// The bytes [start, end) of a block device. With a `stripe` the byte at `at` lies on `drives[(at + shift) / stripe %
/// drives.size()]`; without a `stripe` all bytes lie on one drive, or on several in an unknown order (parity, copies,
/// thin allocation).
struct VolumePiece {
    std::uint64_t start = 0, end = ~0ULL;
    std::uint64_t stripe = 0;  ///< bytes
    std::uint64_t shift = 0;   ///< bytes, less than stripe × drives
    std::vector<std::string> drives;
};

struct Volume {
    std::string name;                 ///< "sda3", "md0", "vg0-scratch"
    std::vector<VolumePiece> pieces;  ///< consecutive
    /// Unique names in the order of the pieces. A partition represents its drive: "sda3".
    std::vector<std::string> drives() const;
};

/// The table of a device of the mapper with this name, as printed by `dmsetup table NAME`; empty when unavailable.
using MapperTable = std::function<std::string(const std::string& name)>;

/// The volume of the device "major:minor"; nothing when sysfs does not list it. Without the table of a mapper only its
/// drives are known. `system_root` is put before /sys.
std::optional<Volume> read_volume(const std::string& device, const MapperTable& table,
                                  const std::string& system_root = "");

/// Runs `dmsetup`, which requires root.
std::string read_mapper_table(const std::string& name);

}  // namespace sonde::records
