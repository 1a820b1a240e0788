// SPDX-License-Identifier: Apache-2.0
// Op `cycle`: which item is taken and which one is made, by arithmetic. Who runs a phase and who only says what it
// would touch both ask here.
#pragma once

#include "plan/meta.hpp"
#include "workloads/tree_job.hpp"

#include <cstdint>
#include <string>

namespace sonde::workloads {

/// One item that is taken, and the one that is made for it.
struct ItemReplacement {
    std::string old_path, new_path;                ///< whole paths
    int old_owner = 0, new_owner = 0;              ///< tasks whose items they are
    std::uint64_t old_number = 0, new_number = 0;  ///< number that makes their content unique
};

/// Calls of one turn: stat and read, and unless items are kept remove and create.
constexpr std::uint64_t calls_per_replacement(const plan::Cycle& cycle) {
    return cycle.inspects_only ? 2 : 4;
}

/// Sets the replacement of task `task` of `tasks` in round `round` (from 0) and copy `copy` of the tree. Allocates only
/// while the strings of `turn` grow.
void set_item_replacement(const TreeJob& tree, const plan::Meta& meta, int task, int tasks, std::uint64_t round,
                          std::uint64_t copy, ItemReplacement& turn);

}  // namespace sonde::workloads
