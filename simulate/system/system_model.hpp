// SPDX-License-Identifier: Apache-2.0
// The parts of a described system between the tasks of one mount and its drives, with every cost as a number. A cost
// that the system lacks is a default of `Defaults` or 0; important ones are listed in `assumptions`.
#pragma once

#include "kernel/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sonde::simulate {

/// The system cannot be simulated as requested. what() is one sentence: what is wrong, where, what to do.
struct SystemModelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Values that a system may omit. Each is the default of the software, or marked as a guess.
struct Defaults {
    static constexpr double call_cost_s = 2e-6;           ///< guess: a system call with its path through a client
    static constexpr double copy_rate = 5e9;              ///< guess: bytes/s of one memcpy between user and kernel
    static constexpr std::uint64_t rpc_size = 1U << 20U;  ///< Lustre: 256 pages a bulk request (to 2.9)
    static constexpr std::uint32_t rpcs_in_flight = 8;    ///< Lustre: osc.*.max_rpcs_in_flight
    static constexpr std::uint64_t dirty_bytes_per_target = 32U << 20U;  ///< Lustre: osc.*.max_dirty_mb
    static constexpr double dirty_share = 0.2;                           ///< Linux: vm.dirty_ratio, of memory
    static constexpr double page_cache_share = 0.75;                     ///< Lustre: llite.*.max_cached_mb, of memory
    static constexpr std::uint64_t read_ahead_bytes = 40U << 20U;  ///< Lustre: max_read_ahead_per_file_mb (to 2.13)
    static constexpr std::uint64_t total_read_ahead_bytes = 40U << 20U;   ///< Lustre: max_read_ahead_mb (to 2.13)
    static constexpr std::uint64_t local_read_ahead_bytes = 128U << 10U;  ///< Linux: read_ahead_kb
    static constexpr double hdd_seek_s = 8.5e-3;                          ///< guess: data sheets of 7200 rpm drives
    static constexpr std::uint64_t segment_bytes = 128U << 10U;           ///< guess: the usual chunk of hardware RAIDs
    static constexpr double metadata_cost_s = 100e-6;     ///< guess: one metadata operation on one thread
    static constexpr std::uint32_t metadata_threads = 8;  ///< guess: operations in parallel
};

/// Bytes/s by direction; 0: unknown, no limit.
struct DirectedRate {
    double read = 0, write = 0;
    double for_direction(bool is_write) const { return is_write ? write : read; }
};

/// A shared link of a path: an adapter, a router, a forwarder, a channel or a controller.
struct LinkDescription {
    std::string id;
    DirectedRate rate;
    bool half_duplex = false;  ///< both directions share one rate
    Time latency = 0;          ///< one way
    Time request_cost = 0;     ///< of each message; it occupies the link
    double noise = 0, slowdown = 1;
    std::uint32_t path_weight = 1;  ///< share among alternative links
    std::uint32_t priority = 0;     ///< of a router: a higher one is used only while none with a lower number works
    std::string nid;                ///< of an LNet router: its NID on the network of the servers
    std::string routed_net;         ///< of an LNet router: the LNet network of the clients
};

struct ClientDescription {
    std::string id;
    std::uint32_t cores = 1;
    std::uint64_t memory_bytes = 0;  ///< bytes, 0 = unknown
    Time call_cost = 0;              ///< of one I/O call
    double copy_rate = 0;            ///< bytes/s between user memory and page cache
    std::uint64_t page_cache_bytes = 0, dirty_limit_bytes = 0,
                  dirty_bytes_per_target = 0;          ///< page_cache_bytes 0: no cache
    std::uint64_t read_ahead_bytes = 0, rpc_size = 0;  ///< rpc_size: bytes
    std::uint64_t total_read_ahead_bytes = 0;          ///< of all its streams in flight; 0: no limit
    std::uint32_t rpcs_in_flight = 0;
    std::uint32_t cached_names = 0;  ///< whose attributes it keeps
    double write_behind_rate = 0;    ///< bytes/s of all background writing of the node; 0: no limit
    Time page_evict_cost = 0;        ///< of one page of 4 KiB
    double slowdown = 1;
    int software_link = -1;     ///< link: limit of its client software; -1: none
    int link = -1;              ///< its adapters; -1: no limit
    bool uses_routers = false;  ///< reaches the servers through `SystemModel::routers`
};

struct ServerDescription {
    std::string id;
    int link = -1;              ///< its adapter
    DirectedRate rate;          ///< limit of the server
    int limit_link = -1;        ///< link with this limit; -1: no limit
    int partner = -1;           ///< server that takes over its targets; -1: none
    std::uint32_t threads = 0;  ///< 0 = no limit
    Time request_cost = 0;
    std::uint64_t read_cache_bytes = 0;           ///< bytes of its read cache
    std::uint64_t max_cached_file_bytes = ~0ULL;  ///< larger files are not cached (readcache_max_filesize)
    double noise = 0, slowdown = 1;
    // Service times of one metadata operation.
    Time create = 0, stat = 0, open = 0, remove = 0, readdir = 0, rename = 0, mkdir = 0, journal = 0;
    Time cached_stat = -1;  ///< of a stat answered from memory; < 0: like any other
};

/// Memory of a controller that answers writes before the drives have them.
struct WriteCacheDescription {
    std::string controller;
    std::uint64_t bytes = 0;
};

/// The drives below one or several targets: a RAID group or a single drive.
struct MediumDescription {
    std::string id;
    std::vector<std::string> drive_ids;  ///< empty: not described
    int write_cache = -1;                ///< index in SystemModel::write_caches; -1: none
    DirectedRate rate;
    std::uint32_t data_drives = 1;    ///< number of drives that a stripe's data fills
    std::uint32_t drive_count = 1;    ///< number of drives
    std::uint64_t segment_bytes = 0;  ///< bytes of a stripe on one drive; 0: unknown
    std::uint32_t parity_drives = 0;  ///< drives of parity; a write of a partial stripe reads old data and all parity
    Time partial_stripe_cost = 0;     ///< of each partial stripe, in addition to its bytes
    Time seek = 0, rotation = 0;      ///< of a request that is not sequential; rotation: one turn
    bool sorts_requests = false;      ///< no seek time is described: long requests are merged and do not seek
    Time access_time = 0;             ///< least time of a request of one drive that is not sequential; 0: no limit
    Time latency = 0;                 ///< least time from the begin of a request at the drives to its end
    Time request_cost = 0;            ///< of a request, in addition to its bytes
    Time turnaround = 0;              ///< between a read and a write
    double inner_rate_share = 1;      ///< at the inner edge, as a share of the outer one
    double rebuild_share = 0.3;       ///< guess: of the rate that a rebuild takes
    double degraded_share = 0.8;      ///< guess: of the rate that remains with a drive missing
    double noise = 0, slowdown = 1;
};

struct TargetDescription {
    std::string id;
    std::uint32_t index_in_file_system = 0;
    int server = -1, medium = -1;
    DirectedRate rate;              ///< as seen by its server; 0: that of its medium
    std::uint32_t queue_depth = 0;  ///< requests in parallel; 0: no limit
    Time request_cost = 0, writer_cost = 0;
    double contention = 0;  ///< share of the rate that each further simultaneously accessed file costs
    std::uint64_t capacity_bytes = 0;
    double noise = 0, slowdown = 1;
    std::vector<int> enclosure_links;     ///< links next to its drives: controller, enclosure
    std::vector<std::vector<int>> paths;  ///< local storage: alternative paths, each a list of links from the node on
};

struct FileSystemDescription {
    std::string id, kind, version;
    bool is_local = false;  ///< without servers: the node accesses the drives
    std::uint64_t stripe_size = 1U << 20U;
    std::int64_t stripe_count = 1;              ///< -1 = all
    std::optional<std::uint32_t> stripe_start;  ///< index in `targets` of the first stripe of all files; empty: in turn
    double used_share = 0;                      ///< fill level, 0..1
    Time lock_cost = 0, revoke_cost = 0;
    std::uint64_t lock_unit_bytes = 0;  ///< 0: no lock conflicts
    double cached_page_cost_s = 0;      ///< of reading a page, for each cached page of the file that a write left
    double log_rate = 0;                ///< bytes/s of writes that extend a file, where the log is no separate part
    Time layout_cost = 0;               ///< of an open, for each target of the file
};

/// One mount of one file system.
struct SystemModel {
    std::string system, mount;
    FileSystemDescription file_system;
    std::vector<LinkDescription> links;
    std::vector<ClientDescription> clients;  ///< the nodes that have the mount
    int log = -1;                            ///< link that writes pass which extend a file (log_rate); -1: no limit
    std::vector<int> routers;                ///< links; requests are distributed by weight
    std::vector<int> forwarders;             ///< links of the nodes that forward (DVS, NFS); empty: native
    Time forward_cost = 0;                   ///< of a request or metadata operation on a thread of a forwarder
    std::uint32_t forward_threads = 0;       ///< of each forwarder; 0 = no limit
    std::uint32_t max_reads_in_flight = 0, max_writes_in_flight = 0;  ///< requests of one stream in flight; 0: no limit
    Time data_cost = 0;                                               ///< additional time to create a file with content
    double size_cost_s = 0;  ///< additional time in seconds for each KiB of that content
    std::vector<ServerDescription> servers;
    std::vector<MediumDescription> media;
    std::vector<WriteCacheDescription> write_caches;  ///< of controllers
    std::vector<TargetDescription> targets;           ///< that store data, by index
    std::vector<int> metadata_servers;                ///< indices in servers
    std::vector<std::string> assumptions;             ///< sentences on omitted values that matter
    std::vector<std::string> unused_members;          ///< sentences on stated values that the model does not use
};

}  // namespace sonde::simulate
