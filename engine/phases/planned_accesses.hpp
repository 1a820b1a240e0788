// SPDX-License-Identifier: Apache-2.0
// The accesses that a plan would make, computed by the code that runs it, without any I/O.
#pragma once

#include "files/task_map.hpp"
#include "plan/plan.hpp"
#include "ranks/team.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::phases {

/// One access of one task. `path` is the file or item; `length` 0 = the name alone is used.
struct PlannedAccess {
    std::size_t phase = 0;
    int task = 0;
    std::uint64_t file = 0;  ///< number of the file in the run; 0 for items of trees
    std::string_view path;
    std::uint64_t offset = 0, length = 0;  ///< bytes
};

/// One pass of one phase.
struct PlannedPhase {
    std::uint64_t files = 0;       ///< that the phase uses, or items of a tree
    std::uint64_t segments = 0;    ///< of each file, as planned; fewer may be readable. 0 on trees
    std::uint64_t operations = 0;  ///< of all tasks; 0 for walk, whose number depends on the tree
    std::uint64_t bytes = 0;       ///< of all tasks
    std::uint64_t order_hash = 0;  ///< hash of every access of every task in order; 0 = not computed
};

/// Receives every access of the first pass of every phase, task by task, in order.
using AccessListener = std::function<void(const PlannedAccess&)>;

/// One element per phase, assuming that every earlier phase completed its volume. With `in_order`, accesses are
/// enumerated, and `listener`, unless empty, receives each. Throws plan::PlanError when the plan cannot be run by these
/// tasks.
std::vector<PlannedPhase> list_accesses(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory,
                                        ranks::Team& team, bool in_order, const AccessListener& listener = {});

}  // namespace sonde::phases
