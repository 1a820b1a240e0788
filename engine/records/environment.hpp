// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and the file system for the record.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::records {

/// The `node` line of the record (schema/record) without `node` and the clock members. Unknown facts are omitted.
/// `directory` must exist.
nlohmann::json describe_node(const std::string& directory);

/// Physical memory of this node in bytes, at most the cgroup's limit.
std::uint64_t read_node_memory();

/// The current time in the format of the record: "2026-11-22T16:12:33.012345Z".
std::string format_utc_now();

/// Engine version ("0.1.0"), compiler and build type.
nlohmann::json engine_version();

}  // namespace sonde::records
