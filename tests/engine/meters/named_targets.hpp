// SPDX-License-Identifier: Apache-2.0
// Targets of streams by their names, and boards on which some streams were added up.
#pragma once

#include "meters/target_board.hpp"

#include <initializer_list>
#include <memory>
#include <string>

namespace sonde::tests {

/// The number of a target that the meter has room for from now on.
inline std::uint32_t add_target(meters::TargetMeter& meter, const std::string& name) {
    const std::uint32_t number = meter.find_or_add_target(name);
    meter.allocate_counters();
    return number;
}

/// The sum of the counters of these streams, in slices that have doubled so often.
inline std::unique_ptr<meters::TargetBoard> board_of(std::initializer_list<meters::TargetsServed> streams,
                                                     std::uint32_t doublings) {
    auto board = std::make_unique<meters::TargetBoard>();
    for (const meters::TargetsServed& stream : streams) {
        board->add(stream, doublings);
    }
    return board;
}

}  // namespace sonde::tests
