// SPDX-License-Identifier: Apache-2.0
// What may be wrong with a machine: one switch each, on and off at any time.
#pragma once

#include "kernel/time.hpp"
#include "system/site.hpp"

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
    noisy_neighbour,
    router_lost,
    unbalanced_path,
    mds_saturated,
    cache_limit,
    tunable,
    client_software,
    full_file_system,
    misaligned_slices
};

/// What a fault is called, what it is about, and what its number means.
struct FaultRule {
    FaultKind kind;
    const char* name;
    const char* part;    ///< "target", "node", "router", "name" (of a tunable), or empty: none
    const char* amount;  ///< what the number is; empty: it takes none
    double usual;        ///< when no number is given
    double least, most;  ///< of the number
    const char* meaning;
};

/// In the order of FaultKind.
inline constexpr std::array fault_rules{
    FaultRule{FaultKind::slow_target, "slow-target", "target", "factor", 10, 1, 1e6,
              "every request at the target takes so many times as long"},
    FaultRule{FaultKind::slow_node, "slow-node", "node", "factor", 4, 1, 1e6,
              "calls, copies and the adapter of the node take so many times as long"},
    FaultRule{FaultKind::failing_drive, "failing-drive", "target", "share of requests", 0.02, 0, 1,
              "so many requests at the target are tried again after half a second"},
    FaultRule{FaultKind::raid_rebuild, "raid-rebuild", "target", "share of the rate", 0.3, 0, 0.95,
              "a drive is missing, and its rebuild takes this share of the rate"},
    FaultRule{FaultKind::noisy_neighbour, "noisy-neighbour", "", "share of the rate", 0.5, 0, 0.95,
              "others write 1 MiB requests to all targets at random times, this share of their rates"},
    FaultRule{FaultKind::router_lost, "router-lost", "router", "", 0, 0, 0, "nothing goes through the router"},
    FaultRule{FaultKind::unbalanced_path, "unbalanced-path", "", "weight", 8, 1, 1e6,
              "the first of several ways (routers, channels) gets so many times the share of another"},
    FaultRule{FaultKind::mds_saturated, "mds-saturated", "", "share of the time", 0.9, 0, 0.99,
              "others keep the metadata servers busy for this share of the time"},
    FaultRule{FaultKind::cache_limit, "cache-limit", "", "bytes", 1048576, 0, 1e18,
              "servers keep only files up to this size in memory (readcache_max_filesize)"},
    FaultRule{FaultKind::tunable, "tunable", "name", "value", 1, 0, 1e18,
              "clients have another value of rpc_size, rpcs_in_flight, dirty_per_target, dirty_limit, read_ahead or "
              "page_cache"},
    FaultRule{FaultKind::client_software, "client-software", "", "seconds a page", 5e-12, 0, 1,
              "reading a page takes so long for each page of the file that the client caches"},
    FaultRule{FaultKind::full_file_system, "full-file-system", "", "share", 0.9, 0, 1,
              "new files lie anywhere on the drives and in pieces"},
    FaultRule{FaultKind::misaligned_slices, "misaligned-slices", "", "bytes", 262144, 1, 1e18,
              "the space of each target begins so far behind the beginning of a stripe"},
};

struct Fault {
    FaultKind kind = FaultKind::slow_target;
    std::string part;  ///< id, index of a target, or name of a tunable
    double amount = 0;
    bool usual = true;  ///< no amount was given
    Time from = 0;      ///< since the machine began

    std::string text() const;  ///< as it is written
};

/// From "slow-target 3 10x", "raid-rebuild fs1-ost017", "tunable rpcs_in_flight 1", "cache-limit 1 MiB", each with "at
/// 30s" behind it if it is not to begin at once. Throws SiteError with one sentence.
Fault parse_fault(std::string_view text);

/// Of the same kind at the same part: only one of these is felt.
inline bool same_part(const Fault& one, const Fault& other) {
    return one.kind == other.kind && one.part == other.part;
}

/// Throws SiteError when the site lacks the part, or says nothing of what the fault would change.
void check_fault(const Fault& fault, const SiteModel& site);

/// Index of the part that a fault names; targets by id, or by number in the file system. -1: none of that name.
int target_named(const SiteModel& site, const std::string& name);
int client_named(const SiteModel& site, const std::string& name);
int router_named(const SiteModel& site, const std::string& name);  ///< index in SiteModel::routers

}  // namespace sonde::simulate
