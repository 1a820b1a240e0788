// SPDX-License-Identifier: Apache-2.0
#include "workloads/item_replacement.hpp"

namespace sonde::workloads {
namespace {

int shift_task(int task, int tasks, std::int64_t by) {
    return static_cast<int>(((task + by) % tasks + tasks) % tasks);
}

void name_item(const TreeJob& tree, int owner, std::uint64_t copy, std::uint64_t number, std::string& path) {
    path = tree.root + "/";
    tree.shape.append_path(path, tree.branches[static_cast<std::size_t>(owner)], copy, 0);
    path += "/" + tree.item_stems[static_cast<std::size_t>(owner)] + std::to_string(number);
}

}  // namespace

void set_item_replacement(const TreeJob& tree, const plan::Meta& meta, int task, int tasks, std::uint64_t round,
                          std::uint64_t copy, ItemReplacement& turn) {
    const std::uint64_t number = meta.window->first + round;
    const std::int64_t by = static_cast<std::int64_t>(meta.cycle.task_distance) * static_cast<std::int64_t>(copy + 1);
    turn.old_owner = shift_task(task, tasks, -by);
    turn.new_owner = shift_task(task, tasks, by);
    turn.old_number = tree.content_number(copy, number);
    turn.new_number = tree.content_number(copy, number + meta.cycle.working_set_items);
    name_item(tree, turn.old_owner, copy, number, turn.old_path);
    name_item(tree, turn.new_owner, copy, number + meta.cycle.working_set_items, turn.new_path);
}

}  // namespace sonde::workloads
