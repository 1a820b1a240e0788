// SPDX-License-Identifier: Apache-2.0
// The block device below a local file system, as sysfs describes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::records {

/// Facts about the device "major:minor": name, kind (disk, partition, loop, dm, md), size_bytes, rotational, scheduler,
/// queue_requests, read_ahead_bytes, maximum_request_bytes, logical_block_bytes, physical_block_bytes,
/// minimum_io_bytes, optimal_io_bytes, model, write_cache, members (devices below), backing_file (loop). Unknown facts
/// are left out; null when there is no such device. `system_root` is put before /sys.
nlohmann::json describe_block_device(const std::string& device, const std::string& system_root = "");

/// The same for the device below a file system: "major:minor", or where that is anonymous (btrfs), the device that the
/// mount names as its source.
nlohmann::json describe_block_device_of_mount(const std::string& device, const std::string& source);

/// "major:minor" of the block special file at `path`, empty when it is none.
std::string read_device_number(const std::string& path);

}  // namespace sonde::records
