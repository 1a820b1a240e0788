// SPDX-License-Identifier: Apache-2.0
// What the processes of a node count in together while a phase runs.
#pragma once

#include "meters/clock.hpp"
#include "meters/stream_meter.hpp"
#include "records/writer.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sonde::phases {

/// Shared by the processes of a node, at the start of its shared memory; the meters follow.
struct Board {
    meters::Clock clock;
    std::atomic<int> phase{-1};                        ///< number of the phase that is being timed, -1 = none
    std::atomic<std::int64_t> start_ns{0};             ///< of its timed part, node clock
    std::atomic<std::uint64_t> planned_operations{0};  ///< of this node's tasks; 0 = a time decides
    std::atomic<std::int64_t> time_limit_ns{0};        ///< the phase ends then at the latest; 0 = none
    std::atomic<int> streams{0};                       ///< meters in use on this node
    std::atomic<int> finished{0};                      ///< the run wrote its last line
    records::Turns turns;                              ///< at the record, of the root and its monitor
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
