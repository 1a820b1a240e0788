// SPDX-License-Identifier: Apache-2.0
// What a machine leaves behind as a real one does: counters of targets and servers in the form of Lustre's files, rows
// of bytes over time as LMT keeps them, and messages of its logs.
#pragma once

#include "kernel/time.hpp"
#include "model/operation.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sonde::simulate {

/// One line of a `stats` file.
struct Tally {
    std::uint64_t samples = 0, least = ~0ULL, most = 0, sum = 0, squares = 0;  ///< squares wrap, as Lustre's do
    void add(std::uint64_t value) noexcept {
        ++samples;
        least = value < least ? value : least;
        most = value > most ? value : most;
        sum += value;
        squares += value * value;
    }
    /// The same value `count` times.
    void add_many(std::uint64_t count, std::uint64_t value) noexcept {
        if (count > 0) {
            add(value);
            samples += count - 1;
            sum += (count - 1) * value;
            squares += (count - 1) * value * value;
        }
    }
};

struct TargetTrace {
    std::string id;
    std::string name;                                           ///< as Lustre has it: fs1-OST0011
    Tally read_bytes, write_bytes;                              ///< of requests
    Tally read_us, write_us;                                    ///< from arrival at the server to the end at the drives
    std::uint64_t other_bytes = 0;                              ///< of the writes, those of neighbours
    std::array<std::uint64_t, 24> read_pages{}, write_pages{};  ///< requests by log2 of their 4 KiB pages
    std::uint64_t cache_hits = 0, cache_misses = 0;             ///< pages, of the server's read cache
    std::uint64_t retries = 0;
    std::uint64_t capacity = 0, space = 0;  ///< bytes: all, and those left; capacity 0: the system does not say
};

/// What one node did: its lines of `llite.*.stats`.
struct NodeTrace {
    std::string id;
    Tally read_bytes, write_bytes;          ///< of calls
    Tally read_us, write_us;                ///< from the call to its return
    std::array<std::uint64_t, 12> calls{};  ///< by Call
    void add(const Operation& operation, std::uint64_t moved, Time length) noexcept;
};

/// What the drives under a target did, together: a row of /proc/diskstats.
struct MediumTrace {
    std::string id;
    std::uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0;
    Time busy = 0;
};

struct ServerTrace {
    std::string id;
    std::array<Tally, 12> calls{};  ///< microseconds, by Call
    double others = 0;              ///< getattr of others, beside those
    std::uint64_t other_us = 0;     ///< each of them
};

struct Message {
    Time at = 0;
    std::string host, text;  ///< of its kernel, without the stamp
};

/// Bytes of all targets since the beginning, at one time.
struct Sample {
    Time at = 0;
    std::vector<std::uint64_t> read, written;  ///< by target
};

struct Traces {
    std::string file_system;
    std::vector<TargetTrace> targets;
    std::vector<ServerTrace> metadata;
    std::vector<NodeTrace> nodes;
    std::vector<MediumTrace> media;
    std::vector<Message> messages;
    std::vector<Sample> samples;
};

/// `obdfilter.<name>.stats`, as of Lustre 2.5; `at` = seconds of the epoch when it is read.
std::string stats_text(const TargetTrace& target, double at);
/// `obdfilter.<name>.brw_stats`: pages per bulk request.
std::string brw_stats_text(const TargetTrace& target, double at);
/// `llite.<name>.stats` of a node.
std::string llite_text(const NodeTrace& node, double at);
/// `obdfilter.<name>.kbytestotal` and the like: what is left of it.
std::string kbytes_text(std::uint64_t bytes);
/// /proc/diskstats, a row for what is below each target.
std::string diskstats_text(const Traces& traces);
/// `mdt.<name>.md_stats`.
std::string md_stats_text(const ServerTrace& server, double at);
/// Rows of LMT's table OST_DATA as CSV: time, target, read_bytes, write_bytes (counters).
std::string lmt_text(const Traces& traces, double epoch);
/// Messages as syslog lines.
std::string log_text(const Traces& traces, double epoch);

/// A file that a real machine would have of this.
struct TraceFile {
    std::string path;  ///< proc/fs/lustre/obdfilter/fs1-OST0000/stats
    /// `epoch` = when the machine began, `at` = when it is read, in seconds of the epoch.
    std::function<std::string(const Traces& traces, double epoch, double at)> text;
    bool of_space = false;  ///< it says what is left on a target
};
/// The same list as long as the machine lives; of its nodes, that of the first `nodes`.
std::vector<TraceFile> trace_files(const Traces& traces, std::size_t nodes);

}  // namespace sonde::simulate
