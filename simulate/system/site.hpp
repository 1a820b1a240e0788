// SPDX-License-Identifier: Apache-2.0
// What the model takes of a described system: the parts between the tasks of one mount and the bytes on its drives,
// with every cost as a number. What the system does not say is a default of `Defaults` or no limit at all, and
// `assumptions` says so in words.
#pragma once

#include "kernel/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::simulate {

/// The system cannot be simulated as asked; what() is one sentence: what, where, what to do.
struct SiteError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Used where a system says nothing. Each is the usual value of the software, or marked as a guess.
struct Defaults {
    static constexpr double call_cost_s = 2e-6;           ///< guess: a system call with its path through a client
    static constexpr double copy_rate = 5e9;              ///< guess: bytes/s of one memcpy between user and kernel
    static constexpr std::uint64_t rpc_size = 1U << 20U;  ///< Lustre: 256 pages a bulk request (to 2.9)
    static constexpr std::uint32_t rpcs_in_flight = 8;    ///< Lustre: osc.*.max_rpcs_in_flight
    static constexpr std::uint64_t dirty_per_target = 32U << 20U;   ///< Lustre: osc.*.max_dirty_mb
    static constexpr double dirty_share = 0.2;                      ///< Linux: vm.dirty_ratio, of memory
    static constexpr double page_cache_share = 0.75;                ///< Lustre: llite.*.max_cached_mb, of memory
    static constexpr std::uint64_t read_ahead = 40U << 20U;         ///< Lustre: max_read_ahead_per_file_mb (to 2.13)
    static constexpr std::uint64_t read_ahead_local = 128U << 10U;  ///< Linux: read_ahead_kb
    static constexpr double hdd_seek_s = 8.5e-3;                    ///< guess: data sheets of 7200 rpm drives
    static constexpr std::uint64_t segment = 128U << 10U;           ///< guess: the usual chunk of hardware RAIDs
    static constexpr double metadata_cost_s = 100e-6;     ///< guess: one operation on names on one server thread
    static constexpr std::uint32_t metadata_threads = 8;  ///< guess: as many run at once without waiting for each other
};

/// Bytes per second by direction; 0 = no limit is known.
struct DirectedRate {
    double read = 0, write = 0;
    double of(bool writing) const { return writing ? write : read; }
};

/// A shared piece of the way: an adapter, a router, a forwarder, a channel, a controller.
struct LinkSite {
    std::string id;
    DirectedRate rate;
    bool half_duplex = false;  ///< both directions share one rate
    Time latency = 0;          ///< one way
    Time request_cost = 0;     ///< of each message, while it holds the link
    double noise = 0, slowdown = 1;
    std::uint32_t weight = 1;  ///< among alternatives
};

struct ClientSite {
    std::string id;
    std::uint32_t cores = 1;
    std::uint64_t memory = 0;  ///< bytes, 0 = unknown
    Time call_cost = 0;        ///< of one I/O call
    double copy_rate = 0;      ///< bytes/s between user memory and page cache
    std::uint64_t page_cache = 0, dirty_limit = 0, dirty_per_target = 0;  ///< bytes; page_cache 0: nothing is kept
    std::uint64_t read_ahead = 0, rpc_size = 0;                           ///< bytes
    std::uint32_t rpcs_in_flight = 0;
    double write_behind = 0;  ///< bytes/s of all background writing of the node; 0 = as fast as storage takes it
    Time evict_cost = 0;      ///< of one page of 4 KiB
    double slowdown = 1;
    int software = -1;    ///< link: what its client of this mount moves; none that limits
    int link = -1;        ///< its adapter, or none that limits
    bool routed = false;  ///< reaches the servers through `SiteModel::routers`
};

struct ServerSite {
    std::string id;
    int link = -1;              ///< its adapter
    DirectedRate rate;          ///< through it
    std::uint32_t threads = 0;  ///< 0 = no limit
    Time request_cost = 0;
    std::uint64_t cache = 0;               ///< bytes that it keeps of what drives hold
    std::uint64_t cache_max_file = ~0ULL;  ///< larger files are not kept (readcache_max_filesize)
    double noise = 0, slowdown = 1;
    // Metadata: service times of one operation.
    Time create = 0, stat = 0, open = 0, remove = 0, readdir = 0, rename = 0, mkdir = 0, journal = 0;
    Time cached = -1;  ///< of one answered from memory; < 0: as any other
};

/// What several targets may share: a RAID group, or whatever holds one target alone.
struct MediumSite {
    std::string id;
    DirectedRate rate;
    std::uint32_t data = 1;        ///< drives' worth of data in a stripe
    std::uint32_t drives = 1;      ///< that hold them
    std::uint64_t segment = 0;     ///< bytes on one drive before the next; 0 = unknown
    bool parity = false;           ///< a write of part of a stripe reads what it needs to make parity
    Time partial_stripe_cost = 0;  ///< of each partial stripe, beside the bytes
    Time seek = 0, rotation = 0;   ///< of a request that does not follow another; rotation = one turn
    bool elevator = false;         ///< seeks were not given: long requests are taken as merged into runs
    Time turnaround = 0;           ///< between a read and a write
    double inner_rate = 1;         ///< at the inner edge, as a share of the outer one
    double rebuild_share = 0.3;    ///< guess: of the rate that a rebuild takes
    double degraded_share = 0.8;   ///< guess: of the rate that is left with a drive missing
    double noise = 0, slowdown = 1;
};

struct TargetSite {
    std::string id;
    std::uint32_t index = 0;  ///< in the file system
    int server = -1, medium = -1;
    DirectedRate rate;              ///< as seen by its server; 0: that of the medium
    std::uint32_t queue_depth = 0;  ///< requests at once; 0 = no limit
    Time request_cost = 0, writer_cost = 0;
    double contention = 0;  ///< of the rate, for each further client at the same time
    std::uint64_t capacity = 0;
    double noise = 0, slowdown = 1;
    std::vector<std::vector<int>> paths;  ///< local storage: ways to it, each a list of links, near ones first
};

struct FileSystemSite {
    std::string id, kind;
    bool local = false;  ///< no servers: the node reaches the drives
    std::uint64_t stripe_size = 1U << 20U;
    std::int64_t stripe_count = 1;              ///< -1 = all
    std::optional<std::uint32_t> stripe_start;  ///< place in `targets` where all files begin; absent: in turn
    double used = 0;                            ///< how full, 0..1
    Time lock_cost = 0, revoke_cost = 0;
    std::uint64_t lock_unit = 0;    ///< bytes; 0: locks never meet
    double cached_page_cost_s = 0;  ///< of reading a page, for each page of the file that the client caches
    double log_rate = 0;            ///< bytes/s of writes that make a file longer, where the log is no part of its own
    Time layout_cost = 0;           ///< of an open, for each target of the file
};

/// One mount of one file system.
struct SiteModel {
    std::string system, mount;
    FileSystemSite fs;
    std::vector<LinkSite> links;
    std::vector<ClientSite> clients;    ///< the nodes that have the mount
    int log = -1;                       ///< link that writes pass which make a file longer (log_rate); -1: no limit
    std::vector<int> routers;           ///< links; requests are dealt to them by weight
    std::vector<int> forwarders;        ///< links of the nodes that forward (DVS, NFS); empty: native
    Time forward_cost = 0;              ///< of a request or an operation on names, on a thread of a forwarder
    std::uint32_t forward_threads = 0;  ///< of each forwarder; 0 = no limit
    std::uint32_t reads_in_flight = 0, writes_in_flight = 0;  ///< requests of one stream under way; 0 = no limit
    Time data_cost = 0;                                       ///< more until a file is made that holds something
    double size_cost_s = 0;                                   ///< more until it is made, for each KiB that it holds
    std::vector<ServerSite> servers;
    std::vector<MediumSite> media;
    std::vector<TargetSite> targets;       ///< that hold data, by index
    std::vector<int> metadata_servers;     ///< indices in servers
    std::vector<std::string> assumptions;  ///< what the system does not say and the model takes for granted
};

/// From a resolved system (schema/system/resolved.schema.json). `mount` names a mount or a file system; empty: the
/// only one, or the first with targets that can be simulated. Throws SiteError.
SiteModel read_site(std::string_view resolved_json, const std::string& mount);

}  // namespace sonde::simulate
