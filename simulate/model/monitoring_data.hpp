// SPDX-License-Identifier: Apache-2.0
// What monitoring reads from a machine: counters of targets and servers as in Lustre's files, rows of bytes over time
// as in LMT, and log messages.
#pragma once

#include "kernel/time.hpp"
#include "model/operation.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sonde::simulate {

/// One line of a Lustre `stats` file.
struct StatsCounter {
    std::uint64_t samples = 0, minimum = ~0ULL, maximum = 0, sum = 0,
                  squares = 0;  ///< squares overflow, as Lustre's do
    void add(std::uint64_t value) noexcept {
        ++samples;
        minimum = value < minimum ? value : minimum;
        maximum = value > maximum ? value : maximum;
        sum += value;
        squares += value * value;
    }
    /// Adds the same value `count` times.
    void add_many(std::uint64_t count, std::uint64_t value) noexcept {
        if (count > 0) {
            add(value);
            samples += count - 1;
            sum += (count - 1) * value;
            squares += (count - 1) * value * value;
        }
    }
};

struct TargetCounters {
    std::string id;
    std::string name;                      ///< in Lustre: fs1-OST0011
    StatsCounter read_bytes, write_bytes;  ///< of requests
    StatsCounter read_us, write_us;        ///< from arrival at the server to completion at the drives
    std::uint64_t neighbor_bytes = 0;      ///< part of write_bytes
    std::array<std::uint64_t, 24> read_pages{}, write_pages{};  ///< requests by log2 of their 4 KiB pages
    std::uint64_t cache_hits = 0, cache_misses = 0;             ///< pages, of the server's read cache
    std::uint64_t retries = 0, slow_writes = 0;                 ///< requests
    std::uint64_t capacity_bytes = 0, free_bytes = 0;           ///< bytes; capacity 0: unknown
};

/// Counters of one node: `llite.*.stats`.
struct NodeCounters {
    std::string id;
    StatsCounter read_bytes, write_bytes;   ///< of calls
    StatsCounter read_us, write_us;         ///< from the call to its return
    std::array<std::uint64_t, 12> calls{};  ///< by ModelCallKind
    void add(const ModelOperation& operation, std::uint64_t bytes, Time duration) noexcept;
};

/// Counters of a drive, or of the drives below a target together: a row of /proc/diskstats.
struct MediumCounters {
    std::string id;
    std::uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0;
    Time busy = 0;
};

/// Counters of a link: a row of /proc/net/dev. Writes are sent, reads received.
struct LinkCounters {
    std::string id;
    std::uint64_t received_bytes = 0, received_messages = 0, sent_bytes = 0, sent_messages = 0;
    std::uint64_t lost_messages = 0;
};

struct ServerCounters {
    std::string id;
    std::array<StatsCounter, 12> calls{};  ///< µs, by ModelCallKind
    double background_stats = 0;           ///< getattr calls of other users, not in `calls`
    std::uint64_t background_us = 0;       ///< µs of each
};

struct LogMessage {
    Time time = 0;
    std::string host, text;  ///< kernel message without its time
};

/// Cumulative bytes of all targets at one time.
struct CounterSample {
    Time time = 0;
    std::vector<std::uint64_t> read, written;  ///< by target
};

struct MonitoringData {
    std::string file_system;
    std::vector<TargetCounters> targets;
    std::vector<ServerCounters> metadata;
    std::vector<NodeCounters> nodes;
    std::vector<MediumCounters> media;   ///< RAID groups, and drives that are none of a group
    std::vector<MediumCounters> drives;  ///< single drives of the groups, where the segment is known
    std::vector<LinkCounters> links;
    std::vector<LogMessage> messages;
    std::vector<CounterSample> samples;
    void log(Time time, const std::string& host, const std::string& text) { messages.push_back({time, host, text}); }
};

/// `obdfilter.<name>.stats` of Lustre 2.5, read at `read_time` (seconds since 1970, as below).
std::string format_stats(const TargetCounters& target, double read_time);
/// `obdfilter.<name>.brw_stats`: pages per bulk request.
std::string format_brw_stats(const TargetCounters& target, double read_time);
/// `llite.<name>.stats` of a node.
std::string format_llite_stats(const NodeCounters& node, double read_time);
/// `obdfilter.<name>.kbytestotal` and `kbytesavail`.
std::string format_kbytes(std::uint64_t bytes);
/// /proc/diskstats with a row for each RAID group and each of its drives.
std::string format_diskstats(const MonitoringData& monitoring);
/// /proc/net/dev with a row for each link: adapters, routers, channels and controllers.
std::string format_net_dev(const MonitoringData& monitoring);
/// `mdt.<name>.md_stats`.
std::string format_md_stats(const ServerCounters& server, double read_time);
/// Rows of LMT's table OST_DATA as CSV: time, target, read_bytes, write_bytes (counters).
std::string format_lmt_rows(const MonitoringData& monitoring, double epoch);
/// Messages as syslog lines.
std::string format_log(const MonitoringData& monitoring, double epoch);

/// A file of a real machine.
struct MonitoringFile {
    std::string path;  ///< proc/fs/lustre/obdfilter/fs1-OST0000/stats
    /// `epoch`: when the machine was built; `read_time`: when the file is read; in seconds since 1970.
    std::function<std::string(const MonitoringData& monitoring, double epoch, double read_time)> text;
    bool reads_free_space = false;  ///< needs TargetCounters::free_bytes
};
/// All files of a machine, with those of its first `nodes` nodes. The list does not change while the machine exists.
std::vector<MonitoringFile> list_monitoring_files(const MonitoringData& monitoring, std::size_t nodes);

}  // namespace sonde::simulate
