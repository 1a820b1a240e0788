// SPDX-License-Identifier: Apache-2.0
// What a machine leaves behind as a real one does: counters of targets and servers in the form of Lustre's files, rows
// of bytes over time as LMT keeps them, and messages of its logs.
#pragma once

#include "kernel/time.hpp"
#include "model/operation.hpp"

#include <array>
#include <cstdint>
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
};

struct TargetTrace {
    std::string id;
    std::string name;  ///< as Lustre has it: fs1-OST0011
    Tally read_bytes, write_bytes;      ///< of requests
    Tally read_us, write_us;            ///< from arrival at the server to the end at the drives
    std::uint64_t other_bytes = 0;      ///< of the writes, those of neighbours
    std::array<std::uint64_t, 24> read_pages{}, write_pages{};  ///< requests by log2 of their 4 KiB pages
    std::uint64_t cache_hits = 0, cache_misses = 0;             ///< pages, of the server's read cache
    std::uint64_t retries = 0;
};

struct ServerTrace {
    std::string id;
    std::array<Tally, 12> calls{};  ///< microseconds, by Call
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
    std::vector<Message> messages;
    std::vector<Sample> samples;
};

/// `obdfilter.<name>.stats`, as of Lustre 2.5; `at` = seconds of the epoch when it is read.
std::string stats_text(const TargetTrace& target, double at);
/// `obdfilter.<name>.brw_stats`: pages per bulk request.
std::string brw_stats_text(const TargetTrace& target, double at);
/// `mdt.<name>.md_stats`.
std::string md_stats_text(const ServerTrace& server, double at);
/// Rows of LMT's table OST_DATA as CSV: time, target, read_bytes, write_bytes (counters).
std::string lmt_text(const Traces& traces, double epoch);
/// Messages as syslog lines.
std::string log_text(const Traces& traces, double epoch);

}  // namespace sonde::simulate
