// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and the file system, without which a number means nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::records {

/// The `node` line of the record (schema/record) without `node` and the clock members. Facts that cannot be had are
/// left out, never guessed. `directory` must exist.
nlohmann::json describe_node(const std::string& directory);

/// Physical memory of this node in bytes, cut to the cgroup's limit when there is one.
std::uint64_t node_memory_bytes();

/// Now, as the record writes times: "2026-11-22T16:12:33Z".
std::string utc_now();

/// Engine version ("0.1.0") and how it was built (compiler, type).
nlohmann::json engine_version();

}  // namespace sonde::records
