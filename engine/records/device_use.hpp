// SPDX-License-Identifier: Apache-2.0
// Users of a block device: file systems, swap, other devices made of it, loop devices on it.
#pragma once

#include <string>
#include <vector>

namespace sonde::records {

/// A block device and the devices that share its bytes.
struct DeviceFamily {
    std::string number;                   ///< "major:minor"
    std::string name;                     ///< as in /sys/class/block
    std::vector<std::string> partitions;  ///< names of the partitions that the kernel knows
    /// Names of the device, its partitions and, for a partition, its disk.
    std::vector<std::string> related;
};

/// Of the device "major:minor"; an empty name when there is none.
DeviceFamily find_device_family(const std::string& number);

/// The users of the device, one of its partitions, or its disk: "is mounted on /home", "holds swap space that is in use
/// (/dev/sda2)", "is part of md0". Empty when nobody does as far as this process can see. The kernel knows more: a
/// device is free when it can also be opened with O_EXCL.
std::string describe_device_use(const DeviceFamily& family);

}  // namespace sonde::records
