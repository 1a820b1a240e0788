// SPDX-License-Identifier: Apache-2.0
// What a plan would touch, computed by the code that runs it and without touching anything.
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

/// One access of one task, as touch() tells it. `path` is the file or the name; `length` 0: the name alone is used.
struct Touched {
    std::size_t phase = 0;
    int task = 0;
    std::uint64_t file = 0;  ///< number of the file in the run; 0 for items of trees
    std::string_view path;
    std::uint64_t offset = 0, length = 0;  ///< bytes
};

/// One pass of one phase.
struct TouchedPhase {
    std::uint64_t files = 0;       ///< that the phase uses, or items of a tree
    std::uint64_t segments = 0;    ///< of each file, as far as asked; less may be there to read. 0 on trees
    std::uint64_t operations = 0;  ///< of all tasks; 0 for walk, which takes what it finds
    std::uint64_t bytes = 0;       ///< of all tasks
    std::uint64_t order = 0;       ///< stands for every access of every task in its order; 0 when it was not asked for
};

/// Hears every access of the first pass of every phase, task after task, each in its order.
using TouchListener = std::function<void(const Touched&)>;

/// One entry a phase, as if every phase before had done all that it was asked to. With `in_order` the accesses are
/// counted one by one, and `listener`, when it is not empty, hears them. Throws plan::PlanError when the plan cannot be
/// run by these tasks.
std::vector<TouchedPhase> touch(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory,
                                ranks::Team& team, bool in_order, const TouchListener& listener = {});

}  // namespace sonde::phases
