// SPDX-License-Identifier: Apache-2.0
// Which tasks a run has, on which nodes they are, and whose data each of them reads.
#pragma once

#include "plan/plan.hpp"

#include <vector>

namespace sonde::files {

/// The tasks of a run: process p runs tasks p * threads … p * threads + threads - 1.
struct TaskMap {
    int threads_per_process = 1;
    std::vector<int> node_of_process;
    int active_tasks = 0;  ///< only the first so many work; 0 = all
    int all_tasks() const { return threads_per_process * static_cast<int>(node_of_process.size()); }
    int tasks() const { return active_tasks > 0 ? active_tasks : all_tasks(); }
    int node_of(int task) const { return node_of_process[static_cast<std::size_t>(task / threads_per_process)]; }
    int nodes() const;
    int tasks_on(int node) const;
    int index_on_node(int task) const;
};

/// Returns the task whose data `task` reads under a shift. A bijection except for `random`.
int shift_task(const plan::Shift& shift, int task, const TaskMap& tasks);

}  // namespace sonde::files
