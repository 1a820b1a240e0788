// SPDX-License-Identifier: Apache-2.0
// Counters that the processes of a node share during a phase.
#pragma once

#include "meters/clock.hpp"
#include "meters/stream_meter.hpp"
#include "records/writer.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sonde::phases {

/// At the start of the node's shared memory; the meters of the streams follow.
struct ProgressBoard {
    meters::Clock clock;
    std::atomic<int> phase_index{-1};                  ///< index of the phase in its timed part, -1 = none
    std::atomic<std::int64_t> timed_part_start_ns{0};  ///< of its timed part, node clock
    std::atomic<std::uint64_t> planned_operations{0};  ///< of this node's tasks; 0 = the phase ends by time
    std::atomic<std::int64_t> time_limit_ns{0};        ///< latest end of the phase; 0 = none
    std::atomic<int> stream_count{0};                  ///< meters in use on this node
    std::atomic<int> is_run_finished{0};               ///< 1 after the run wrote its last line
    records::WriterLock writer_lock;                   ///< serializes the root and its monitor at the record
    std::atomic<std::uint64_t> files_removed{0};
    int max_slices = 0;

    static std::size_t bytes_for(int stream_count, int max_slices) {
        return 4096 + static_cast<std::size_t>(stream_count) * meters::StreamMeter::address_space_bytes(max_slices);
    }
    meters::StreamMeter& meter(int index) {
        return *reinterpret_cast<meters::StreamMeter*>(reinterpret_cast<std::byte*>(this) + 4096 +
                                                       static_cast<std::size_t>(index) *
                                                           meters::StreamMeter::address_space_bytes(max_slices));
    }
};

}  // namespace sonde::phases
