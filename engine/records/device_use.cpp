// SPDX-License-Identifier: Apache-2.0
// Reads /sys/dev/block, /proc/self/mountinfo and /proc/swaps.
#include "records/device_use.hpp"

#include "records/block_device.hpp"
#include "records/mounts.hpp"
#include "records/system_file.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace sonde::records {
namespace {

std::string read_number(const std::string& name) {
    return read_system_text("/sys/class/block/" + name + "/dev").value_or("");
}

std::vector<std::string> list_entries(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// "" for the device itself, else "has a partition NAME that " or "is on the disk NAME, which ".
std::string describe_relation(const DeviceFamily& family, const std::string& name) {
    if (name == family.name) {
        return "";
    }
    const bool is_partition =
        std::find(family.partitions.begin(), family.partitions.end(), name) != family.partitions.end();
    return is_partition ? "has the partition " + name + ", which " : "is on the disk " + name + ", which ";
}

std::string describe_mount(const std::string& number) {
    for (const Mount& mount : parse_mounts(read_system_file("/proc/self/mountinfo"))) {
        // The number of a mounted btrfs is not that of its device, which mountinfo names as the source.
        if (mount.device == number ||
            (mount.source.starts_with("/dev/") && read_device_number(mount.source) == number)) {
            return "is mounted on " + mount.point;
        }
    }
    return {};
}

std::string describe_swap(const std::string& number) {
    std::istringstream lines(read_system_file("/proc/swaps"));
    std::string line;
    for (std::getline(lines, line); std::getline(lines, line);) {
        if (const std::string path = line.substr(0, line.find_first_of(" \t")); read_device_number(path) == number) {
            return "holds swap space that is in use";
        }
    }
    return {};
}

std::string describe_holder(const std::string& name) {
    const std::vector<std::string> holders = list_entries("/sys/class/block/" + name + "/holders");
    return holders.empty() ? std::string() : "is part of " + holders.front();
}

/// The kernel lets a loop device and another user share the device below.
std::string describe_loop(const std::string& number) {
    for (const std::string& name : list_entries("/sys/class/block")) {
        const auto file = read_system_text("/sys/class/block/" + name + "/loop/backing_file");
        if (file && read_device_number(*file) == number) {
            return "is below the loop device " + name;
        }
    }
    return {};
}

}  // namespace

DeviceFamily find_device_family(const std::string& number) {
    std::error_code failed;
    const std::filesystem::path folder = std::filesystem::canonical("/sys/dev/block/" + number, failed);
    if (failed) {
        return {number, {}, {}, {}};
    }
    DeviceFamily family{number, folder.filename().string(), {}, {}};
    family.related.push_back(family.name);
    for (const std::string& entry : list_entries(folder)) {
        if (std::filesystem::exists(folder / entry / "partition", failed)) {
            family.partitions.push_back(entry);
            family.related.push_back(entry);
        }
    }
    if (std::filesystem::exists(folder / "partition", failed)) {
        family.related.push_back(folder.parent_path().filename().string());
    }
    return family;
}

std::string describe_device_use(const DeviceFamily& family) {
    for (const std::string& name : family.related) {
        const std::string number = read_number(name);
        if (number.empty()) {
            continue;
        }
        for (const std::string& use :
             {describe_mount(number), describe_swap(number), describe_holder(name), describe_loop(number)}) {
            if (!use.empty()) {
                return describe_relation(family, name) + use;
            }
        }
    }
    return {};
}

}  // namespace sonde::records
