// SPDX-License-Identifier: Apache-2.0
// Counters of one file, in the manner of Darshan's POSIX module, and one open of it.
#pragma once

#include "system/frequent_values.hpp"
#include "system/lock.hpp"
#include "trace/trace.hpp"

namespace sonde::trace {

struct AccessCounts {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    std::uint64_t ticks = 0;
    std::uint64_t slowest = 0;
    std::uint64_t consecutive = 0;  ///< began where the one before ended
    std::uint64_t sequential = 0;   ///< began at or after the end of the one before
    std::uint64_t errors = 0;
    std::uint64_t short_transfers = 0;  ///< returned less than was asked for
    std::int64_t highest_offset = -1;   ///< last byte touched
    std::uint64_t first = 0, last = 0;  ///< ticks: begin of the first, end of the last
    std::uint64_t sizes[10] = {};
};

struct Record {
    system::Lock lock;
    Record* in_bucket = nullptr;
    std::uint64_t hash = 0;
    std::uint32_t number = 0;
    AccessCounts read, write;
    std::uint64_t calls[static_cast<unsigned>(Kind::count)] = {};
    std::uint64_t metadata_ticks = 0;
    std::uint64_t switches = 0;  ///< from reading to writing or back
    std::uint64_t file_unaligned = 0, memory_unaligned = 0;
    Kind last_kind = Kind::Other;
    std::int64_t last_begin = 0;  ///< of the last read or write, through whichever descriptor
    std::int64_t last_end = 0;
    bool has_moved_data = false;
    system::FrequentValues sizes, strides;
    std::int64_t largest_open = 0;  ///< size of the file when it was last opened or closed
    std::uint64_t first_open = 0;
    int flags = 0;
    std::uint32_t block = 4096;
    std::int64_t block_mask = 4095;
    char path[512] = {};
};

struct OpenDescription {
    OpenDescription* next_free = nullptr;
    Record* record = nullptr;
    std::int64_t offset = 0;
    int references = 0;
};

struct CallEvent {
    std::uint64_t began;
    std::uint32_t ticks;  ///< length; the largest value means that or longer
    std::uint32_t file : 24;
    std::uint32_t kind : 8;
    std::int64_t offset;
    std::int64_t bytes;
};

struct PathCallTotals {  // calls on paths, not on descriptors
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> ticks{0};
};

struct TraceState {
    const char* folder = nullptr;
    static constexpr std::uint32_t buckets = 4096;
    static constexpr std::uint32_t max_records = 65536;
    system::Lock lock;
    Record** record_buckets = nullptr;
    Record** all_records = nullptr;
    std::atomic<std::uint32_t> records{0};
    std::uint64_t unrecorded_opens = 0;  ///< opens beyond the last record
    CallEvent* events = nullptr;
    std::size_t max_events = 0;
    std::atomic<std::uint64_t> events_seen{0};
    PathCallTotals path_calls[static_cast<unsigned>(Kind::count)];
    std::uint64_t began_ticks = 0, began_ns = 0, began_wall_ns = 0;
};
extern TraceState state;

}  // namespace sonde::trace
