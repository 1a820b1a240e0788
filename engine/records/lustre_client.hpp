// SPDX-License-Identifier: Apache-2.0
// What the client of Lustre says of itself in /sys/fs/lustre, /proc/fs/lustre and debugfs (what `lctl get_param`
// prints): versions, the settings on which a rate depends, and the locks that it holds.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::records {

/// Name of the file system in the source of a mount ("10.1.1.1@tcp:10.1.1.2@tcp:/scratch/home" -> "scratch"); empty
/// when the source is none of Lustre's.
std::string lustre_name(const std::string& source);

/// Versions and settings, each as text; where targets differ, "8 on 3, 32 on 1". `name` = of the file system; empty:
/// all that there are. Members that cannot be read are left out; an object without members where there is no client.
nlohmann::json describe_lustre_client(const std::string& name);

/// A namespace of locks: one a target.
struct LockSpace {
    std::string name, folder;
};
std::vector<LockSpace> lock_spaces(const std::string& name);

struct LockCount {
    std::uint64_t held = 0, unused = 0;  ///< unused: kept for the next use only
};
LockCount locks_in(const std::vector<LockSpace>& spaces);

/// True when $SONDE_LUSTRE_ROOT names a folder that is read in place of "/", for tests and containers.
bool lustre_pretended();

}  // namespace sonde::records
