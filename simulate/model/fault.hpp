// SPDX-License-Identifier: Apache-2.0
// Faults of a machine that can be switched on and off at any time.
#pragma once

#include "kernel/time.hpp"
#include "system/system_model.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::simulate {

enum class FaultKind {
    slow_target,
    slow_node,
    failing_drive,
    raid_rebuild,
    noisy_neighbor,
    router_lost,
    unbalanced_path,
    mds_saturated,
    cache_limit,
    tunable,
    client_software,
    full_file_system,
    misaligned_slices,
    slow_drive,
    slow_link,
    lossy_link,
    server_lost,
    write_through
};

/// The name of a fault and the meaning of its argument and number.
struct FaultRule {
    FaultKind kind;
    const char* name;
    const char* part_kind;       ///< "target", "node", "router", "link", "server", "controller", "name" (of a tunable);
                                 ///< empty: no argument
    const char* amount_meaning;  ///< meaning of the number; empty: no number
    double default_amount;
    double minimum, maximum;  ///< of the number
    const char* meaning;
};

/// In the order of FaultKind.
inline constexpr std::array fault_rules{
    FaultRule{FaultKind::slow_target, "slow-target", "target", "factor", 10, 1, 1e6,
              "every request at the target takes this many times as long"},
    FaultRule{FaultKind::slow_node, "slow-node", "node", "factor", 4, 1, 1e6,
              "calls, copies and the adapter of the node take this many times as long"},
    FaultRule{FaultKind::failing_drive, "failing-drive", "target", "share of requests", 0.02, 0, 1,
              "this share of requests at the target is retried after half a second"},
    FaultRule{FaultKind::raid_rebuild, "raid-rebuild", "target", "share of the rate", 0.3, 0, 0.95,
              "a drive is missing, and its rebuild takes this share of the rate"},
    FaultRule{FaultKind::noisy_neighbor, "noisy-neighbor", "", "share of the rate", 0.5, 0, 0.95,
              "other users write 1 MiB requests to all targets at random times, at this share of their rates"},
    FaultRule{FaultKind::router_lost, "router-lost", "router", "", 0, 0, 0, "no request passes the router"},
    FaultRule{FaultKind::unbalanced_path, "unbalanced-path", "", "weight", 8, 1, 1e6,
              "the first of several paths (routers, channels) gets this many times the share of another"},
    FaultRule{FaultKind::mds_saturated, "mds-saturated", "", "share of the time", 0.9, 0, 0.99,
              "other users occupy the metadata servers for this share of the time"},
    FaultRule{FaultKind::cache_limit, "cache-limit", "", "bytes", 1048576, 0, 1e18,
              "servers cache only files up to this size (readcache_max_filesize)"},
    FaultRule{FaultKind::tunable, "tunable", "name", "value", 1, 0, 1e18,
              "clients have another value of rpc_size, rpcs_in_flight, dirty_per_target, dirty_limit, read_ahead or "
              "page_cache"},
    FaultRule{FaultKind::client_software, "client-software", "", "seconds a page", 5e-12, 0, 1,
              "reading a page takes this long for each page of the file that a write left in the client's cache"},
    FaultRule{FaultKind::full_file_system, "full-file-system", "", "share", 0.9, 0, 1,
              "new files are anywhere on the drives and fragmented"},
    FaultRule{FaultKind::misaligned_slices, "misaligned-slices", "", "bytes", 262144, 1, 1e18,
              "the space of each target begins this many bytes after the begin of a stripe"},
    FaultRule{FaultKind::slow_drive, "slow-drive", "target", "factor", 10, 1, 1e6,
              "every request at one drive of the target's RAID group takes this many times as long"},
    FaultRule{FaultKind::slow_link, "slow-link", "link", "factor", 4, 1, 1e6,
              "every message takes this many times as long on the link: an adapter, router, channel or controller"},
    FaultRule{FaultKind::lossy_link, "lossy-link", "link", "share of messages", 0.01, 0, 0.9,
              "this share of the messages on the link is lost, and sent again after 0.2 s"},
    FaultRule{FaultKind::server_lost, "server-lost", "server", "seconds", 30, 0, 1e6,
              "the server is down: after this time of recovery its partner has its targets"},
    FaultRule{FaultKind::write_through, "write-through", "controller", "", 0, 0, 0,
              "the controller answers writes only when the drives have them"},
};

struct Fault {
    FaultKind kind = FaultKind::slow_target;
    std::string part;  ///< id, index of a target, or name of a tunable
    double amount = 0;
    bool has_default_amount = true;
    Time from = 0;   ///< since the machine was built
    Time until = 0;  ///< when it ends; 0: never

    std::string to_text() const;  ///< as parse_fault() reads it
};

/// Parses "slow-target 3 10x", "raid-rebuild fs1-ost017", "tunable rpcs_in_flight 1" or "cache-limit 1 MiB", each with
/// an optional "at 30s" and "until 60s" at the end. Throws SystemModelError with one sentence.
Fault parse_fault(std::string_view text);

/// Whether both faults are of one kind at one part, so that only one has an effect.
inline bool has_same_part(const Fault& a, const Fault& b) {
    return a.kind == b.kind && a.part == b.part;
}

/// Throws SystemModelError when the site lacks the part, or when the fault would have no effect on it.
void check_fault(const Fault& fault, const SystemModel& site);

/// Index of a part by its id (of a target also by its index in the file system); -1: unknown.
int find_target_index(const SystemModel& site, const std::string& name);
int find_client_index(const SystemModel& site, const std::string& name);
int find_router_index(const SystemModel& site, const std::string& name);  ///< index in SystemModel::routers
int find_link_index(const SystemModel& site, const std::string& name);
int find_server_index(const SystemModel& site, const std::string& name);
/// Index in SystemModel::write_caches; -1: none.
int find_write_cache_index(const SystemModel& site, const std::string& controller);

}  // namespace sonde::simulate
