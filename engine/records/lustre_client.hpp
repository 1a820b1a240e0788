// SPDX-License-Identifier: Apache-2.0
// The Lustre client, from /sys/fs/lustre, /proc/fs/lustre and debugfs (as printed by `lctl get_param`): versions,
// settings that affect rates, and locks.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::records {

/// Name of the file system in the source of a mount ("10.1.1.1@tcp:10.1.1.2@tcp:/scratch/home" -> "scratch"); empty for
/// other file systems.
std::string parse_lustre_name(const std::string& source);

/// Versions and settings, each as text; where targets differ, "8 on 3, 32 on 1". `name` of the file system; empty =
/// all. Unreadable members are omitted; an empty object without a client.
nlohmann::json describe_lustre_client(const std::string& name);

/// A namespace of locks; one per target.
struct LockSpace {
    std::string name, folder;
};
std::vector<LockSpace> list_lock_spaces(const std::string& name);

struct LockCount {
    std::uint64_t held = 0, unused = 0;  ///< unused: cached for later use
};
LockCount count_locks(const std::vector<LockSpace>& spaces);

/// Whether $SONDE_LUSTRE_ROOT names a directory that replaces "/", for tests and containers.
bool is_lustre_pretended();

}  // namespace sonde::records
