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
    std::atomic<int> phase{-1};                        ///< index of the phase in its timed part, -1 = none
    std::atomic<std::int64_t> start_ns{0};             ///< of its timed part, node clock
    std::atomic<std::uint64_t> planned_operations{0};  ///< of this node's tasks; 0 = the phase ends by time
    std::atomic<std::int64_t> time_limit_ns{0};        ///< latest end of the phase; 0 = none
    std::atomic<int> streams{0};                       ///< meters in use on this node
    std::atomic<int> finished{0};                      ///< 1 after 1 after the run wrote its last line
    records::WriterLock turns;                         ///< serializes the root and its monitor at the record
    std::atomic<std::uint64_t> files_removed{0};
    int max_slices = 0;

    static std::size_t bytes_for(int streams, int max_slices) {
        return 4096 + static_cast<std::size_t>(streams) * meters::StreamMeter::bytes_for(max_slices);
    }
    meters::StreamMeter& meter(int index) {
        return *reinterpret_cast<meters::StreamMeter*>(reinterpret_cast<std::byte*>(this) + 4096 +
                                                       static_cast<std::size_t>(index) *
                                                           meters::StreamMeter::bytes_for(max_slices));
    }
};

}  // namespace sonde::phases
