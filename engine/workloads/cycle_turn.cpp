// SPDX-License-Identifier: Apache-2.0
#include "workloads/cycle_turn.hpp"

namespace sonde::workloads {
namespace {

int task_beside(int task, int tasks, std::int64_t by) {
    return static_cast<int>(((task + by) % tasks + tasks) % tasks);
}

void name_item(const TreeJob& tree, int owner, std::uint64_t copy, std::uint64_t number, std::string& path) {
    path = tree.root + "/";
    tree.shape.append_path(path, tree.branches[static_cast<std::size_t>(owner)], copy, 0);
    path += "/" + tree.stems[static_cast<std::size_t>(owner)] + std::to_string(number);
}

}  // namespace

void set_turn(const TreeJob& tree, const plan::Meta& meta, int task, int tasks, std::uint64_t round, std::uint64_t copy,
              CycleTurn& turn) {
    const std::uint64_t number = meta.window->first + round;
    const std::int64_t by = static_cast<std::int64_t>(meta.cycle.spread) * static_cast<std::int64_t>(copy + 1);
    turn.taken_of = task_beside(task, tasks, -by);
    turn.made_for = task_beside(task, tasks, by);
    turn.taken_number = tree.content_number(copy, number);
    turn.made_number = tree.content_number(copy, number + meta.cycle.working);
    name_item(tree, turn.taken_of, copy, number, turn.old_path);
    name_item(tree, turn.made_for, copy, number + meta.cycle.working, turn.new_path);
}

}  // namespace sonde::workloads
