// SPDX-License-Identifier: Apache-2.0
// All that is measured of one stream (a task, or one of the two streams of a task in a duplex phase) in one phase.
// Plain data in memory shared by the node: the stream writes, its node's leader reads when the phase is over, and the
// progress monitor reads the live counters at any time. Times are nanoseconds since the start of the phase. A new meter
// is made in memory that is zeroed or held a meter with as many slices before.
#pragma once

#include "meters/histogram.hpp"
#include "meters/kinds.hpp"
#include "meters/slices.hpp"
#include "meters/training_meter.hpp"

#include <atomic>
#include <cstdint>
#include <span>

namespace sonde::meters {

enum WorkPart : unsigned { part_open, part_transfer, part_fsync, part_close, parts };

/// From the first start to the last end of one kind of work, and the time really spent in it.
struct WorkInterval {
    std::int64_t first_start_ns = -1;  ///< -1 = did not happen
    std::int64_t last_end_ns = -1;
    std::int64_t sum_ns = 0;
    void add(std::int64_t from, std::int64_t to) noexcept {
        first_start_ns = first_start_ns < 0 || from < first_start_ns ? from : first_start_ns;
        last_end_ns = to > last_end_ns ? to : last_end_ns;
        sum_ns += to - from;
    }
};

struct StreamMeter {
    // Live counters: written by the stream with relaxed stores, read by the monitor.
    struct alignas(64) LiveCounters {
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint64_t> operations{0};
        std::atomic<std::uint32_t> active{0};
    } live_counters;

    int task = -1;
    int duplex_stream = 0;              ///< its position in a duplex phase
    std::uint64_t bytes[2] = {};        ///< by kind_read, kind_write
    std::uint64_t file_operations = 0;  ///< on names
    std::uint64_t listed_entries = 0;   ///< readdir, walk: names found
    std::uint64_t listed_directories = 0, examined_entries = 0, matched_entries = 0;  ///< walk: of these
    std::uint64_t operations[2] = {};
    std::uint64_t planned_bytes = 0, planned_operations = 0;  ///< 0 when a time decides
    std::uint64_t short_operations = 0, failed_operations = 0, retries = 0;
    std::uint64_t checked_bytes = 0, mismatch_count = 0;
    std::int64_t verify_ns = 0;
    TrainingMeter training;
    WorkInterval parts_of_work[parts];
    std::int64_t finished_ns = -1;                                ///< end of this stream's own work
    bool deadline_passed = false;                                 ///< the deadline came before the work was done
    std::uint64_t stonewall_bytes = 0, stonewall_operations = 0;  ///< moved until the deadline
    std::uint64_t user_ns = 0, system_ns = 0;                     ///< of the thread, during the transfer
    std::uint64_t completed_files = 0;                            ///< mapping many: files completely done
    std::uint64_t next_operation = 0;  ///< how far the first pass came: operations done of it
    std::uint32_t slices_used = 0, slices_doublings = 0;
    std::uint32_t kinds_used = 0;  ///< one bit each: histograms that belong to this phase

    /// Address space of a meter with its slices and histograms, which follow it. Memory is taken only by what is used:
    /// the slices, and two or three pages of each histogram that has values.
    static std::size_t address_space_bytes(int max_slices) noexcept {
        return header_bytes + kinds * sizeof(Histogram) + slice_memory_bytes(max_slices);
    }
    /// Memory that a stream's meter takes at most when values of `used` kinds are counted.
    static std::size_t max_memory_bytes(int max_slices, unsigned used) noexcept {
        return header_bytes + used * sizeof(Histogram) + slice_memory_bytes(max_slices);
    }
    /// To add to. Emptied when it is the first time in this phase.
    Histogram& histogram(unsigned kind) noexcept {
        Histogram& selected = reinterpret_cast<Histogram*>(start() + header_bytes)[kind];
        if ((kinds_used >> kind & 1U) == 0) [[unlikely]] {
            selected.clear();
            kinds_used |= 1U << kind;
        }
        return selected;
    }
    /// To read; null when this phase has none of that kind.
    const Histogram* find_histogram(unsigned kind) const noexcept {
        return (kinds_used >> kind & 1U) == 0
                   ? nullptr
                   : reinterpret_cast<const Histogram*>(reinterpret_cast<const std::byte*>(this) + header_bytes) + kind;
    }
    std::uint64_t* slice_bytes() noexcept {
        return reinterpret_cast<std::uint64_t*>(start() + header_bytes + kinds * sizeof(Histogram));
    }
    std::uint64_t* slice_operations(int max_slices) noexcept { return slice_bytes() + max_slices; }

 private:
    static constexpr std::size_t header_bytes = 4096;
    static std::size_t slice_memory_bytes(int max_slices) noexcept {
        return (2 * static_cast<std::size_t>(max_slices) * sizeof(std::uint64_t) + 4095) / 4096 * 4096;
    }
    std::byte* start() noexcept { return reinterpret_cast<std::byte*>(this); }
};
static_assert(sizeof(StreamMeter) <= 4096);

}  // namespace sonde::meters
