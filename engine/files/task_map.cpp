// SPDX-License-Identifier: Apache-2.0
#include "files/task_map.hpp"

#include "patterns/permutation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace sonde::files {

int TaskMap::nodes() const {
    return node_of_process.empty() ? 1 : 1 + *std::max_element(node_of_process.begin(), node_of_process.end());
}

int TaskMap::tasks_on(int node) const {
    // Called for every task of a run, so whole processes are compared at once.
    const int full_processes = tasks() / threads_per_process;
    const auto end = node_of_process.begin() + full_processes;
    const int last_threads = tasks() % threads_per_process;
    return threads_per_process * static_cast<int>(std::count(node_of_process.begin(), end, node)) +
           (last_threads > 0 && *end == node ? last_threads : 0);
}

int TaskMap::index_on_node(int task) const {
    const auto process = static_cast<std::ptrdiff_t>(task / threads_per_process);
    const int node = node_of(task);
    return threads_per_process *
               static_cast<int>(std::count(node_of_process.begin(), node_of_process.begin() + process, node)) +
           task % threads_per_process;
}

namespace {

/// The tasks are lined up node by node, however the launcher dealt them, and counted on by as many as the fullest node
/// has, `n` times: the same place `n` nodes further when all nodes are alike, and another task for each in any case.
int shift_task_by_nodes(int n, int task, const TaskMap& tasks) {
    std::vector<int> on(static_cast<std::size_t>(tasks.nodes()));
    for (const int node : tasks.node_of_process) {
        on[static_cast<std::size_t>(node)] += tasks.threads_per_process;
    }
    const auto all = static_cast<std::int64_t>(tasks.tasks());
    const auto node_tasks = on.begin() + tasks.node_of(task);
    std::int64_t index = std::accumulate(on.begin(), node_tasks, std::int64_t{0}) + tasks.index_on_node(task);
    index += static_cast<std::int64_t>(n) * *std::max_element(on.begin(), on.end());
    index = ((index % all) + all) % all;
    int node = 0;
    for (; index >= on[static_cast<std::size_t>(node)]; ++node) {
        index -= on[static_cast<std::size_t>(node)];
    }
    auto process = tasks.node_of_process.begin();
    for (std::int64_t skipped = index / tasks.threads_per_process; *process != node || skipped-- > 0;) {
        ++process;
    }
    return tasks.threads_per_process * static_cast<int>(process - tasks.node_of_process.begin()) +
           static_cast<int>(index % tasks.threads_per_process);
}

}  // namespace

int shift_task(const plan::Shift& shift, int task, const TaskMap& tasks) {
    const auto all = static_cast<std::int64_t>(tasks.tasks());
    const auto wrap = [all](std::int64_t n) { return static_cast<int>(((n % all) + all) % all); };
    switch (shift.by) {
        case plan::ShiftBy::none:
            return task;
        case plan::ShiftBy::tasks:
            return wrap(static_cast<std::int64_t>(task) + shift.n);
        case plan::ShiftBy::nodes:
            return shift_task_by_nodes(shift.n, task, tasks);
        case plan::ShiftBy::random:
            return static_cast<int>(patterns::scale_to_range(
                patterns::mix64(patterns::mix64(shift.seed) + static_cast<std::uint64_t>(task)),
                static_cast<std::uint64_t>(all)));
        case plan::ShiftBy::list:
            return shift.owners.at(static_cast<std::size_t>(task));
        case plan::ShiftBy::permute:
            return static_cast<int>(
                patterns::Permutation(static_cast<std::uint64_t>(all), shift.seed)(static_cast<std::uint64_t>(task)));
    }
    return task;
}

}  // namespace sonde::files
