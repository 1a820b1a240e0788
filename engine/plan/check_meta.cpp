// SPDX-License-Identifier: Apache-2.0
#include "plan/check_meta.hpp"

#include "plan/plan_error.hpp"

namespace sonde::plan {
namespace {

/// Whether the operation changes nothing, so that it can be repeated. A walk distributes its work once.
bool is_repeatable(Op op) {
    return operation_info(op).effect == OperationInfo::OperationEffect::inspects && op != Op::walk;
}

std::string check_repeated_names() {
    std::vector<std::string> names;
    for (const OperationInfo& row : operations) {
        if (acts_on_tree(row.op) && is_repeatable(row.op)) {
            names.emplace_back(row.name);
        }
    }
    std::string list = names.front();
    for (std::size_t i = 1; i < names.size(); ++i) {
        list += (i + 1 < names.size() ? ", " : " or ") + names[i];
    }
    return list;
}

void check_items(const std::string& where, const Phase& phase) {
    const Meta& meta = *phase.meta;
    if (operation_info(phase.op).only_files && meta.objects == Objects::directories) {
        throw_member_error(where + ".meta.objects", "= \"directories\" does not go with op = \"" +
                                                        std::string(operation_name(phase.op)) +
                                                        "\": only files are opened and read");
    }
    if (acts_on_items(phase.op) && meta.tree.items_per_dir == 0) {
        throw_member_error(where + ".meta.tree", "has no items: give it items_per_dir or items_per_task");
    }
    if (phase.op == Op::create && meta.create_call == MakeFile::mknod && meta.write_bytes > 0) {
        throw_member_error(where + ".meta.file.create", "= \"mknod\" opens nothing, so file.write must be 0");
    }
    if (meta.fsync && phase.op == Op::create && meta.create_call == MakeFile::mknod) {
        throw_member_error(where + ".meta.file.create", "= \"mknod\" opens nothing, so there is nothing to fsync");
    }
    if (acts_on_items(phase.op) && !is_repeatable(phase.op) &&
        (meta.order == SelectOrder::replace || meta.order == SelectOrder::zipf)) {
        throw_member_error(where + ".meta.select.order",
                           "must be creation or permute: each item is made, renamed or removed once");
    }
    if (phase.op == Op::rename && meta.order != SelectOrder::creation) {
        throw_member_error(where + ".meta.select.order",
                           "must be creation: each item takes the name of the one before it");
    }
    if (phase.op == Op::rename && meta.shared_single) {
        throw_member_error(where + ".meta.file.shared_single",
                           "does not go with op = \"rename\": tasks would take names from each other");
    }
}

void check_window(const std::string& where, const Phase& phase) {
    const Meta& meta = *phase.meta;
    const bool tells_itself = phase.data.payload.kind == PayloadKind::ior_timestamp ||
                              phase.data.payload.kind == PayloadKind::ior_offset ||
                              phase.data.payload.kind == PayloadKind::ior_incompressible ||
                              phase.data.payload.kind == PayloadKind::ior_random;
    if (meta.window && (meta.order != SelectOrder::creation || meta.shared_single || meta.single_task ||
                        meta.path_kind != PathKind::full || phase.op == Op::rename)) {
        throw_member_error(
            where + ".meta.window",
            "goes with select.order = \"creation\" and lookup.paths = \"full\", and not with file.shared_single, "
            "single_task or op = \"rename\"");
    }
    if (meta.window && (meta.write_bytes > 0 || meta.read_bytes > 0) && !tells_itself) {
        throw_member_error(where + ".meta.window", "needs a payload.kind that tells itself: one of ior_…");
    }
    if (phase.op != Op::cycle) {
        return;
    }
    const bool one_level = meta.tree.depth == 0 && meta.tree.scope == TreeScope::per_task;
    if (!meta.window || !one_level || meta.objects != Objects::files || meta.create_call != MakeFile::open) {
        throw_member_error(where + ".op",
                           "= \"cycle\" needs meta.window, tree.scope = \"per_task\", tree.depth = 0 and files");
    }
    if (meta.write_bytes == 0 || meta.read_bytes != meta.write_bytes) {
        throw_member_error(where + ".meta.file", "must write and read the same number of bytes, at least one");
    }
    if (!meta.cycle.inspects_only &&
        meta.window->first + meta.window->count + meta.cycle.working_set_items > meta.tree.items_per_dir) {
        throw_member_error(where + ".meta.cycle.working", "makes items beyond tree.items_per_dir");
    }
    if (phase.stop.items) {
        throw_member_error(where + ".stop.items",
                           "does not end op = \"cycle\", whose rounds are counted by meta.window.count");
    }
}

void check_stop_rules(const std::string& where, const Phase& phase) {
    if ((phase.stop.time || phase.stop.min_time) && !is_repeatable(phase.op)) {
        throw_member_error(where + ".stop", std::string("must not repeat op = \"") + operation_name(phase.op) +
                                                "\": use stop.stonewall, or stop.time with " + check_repeated_names());
    }
    if (phase.stop.items && !acts_on_items(phase.op)) {
        throw_member_error(where + ".stop.items", std::string("counts the items of a task, but op = \"") +
                                                      operation_name(phase.op) +
                                                      "\" works on directories: leave it out");
    }
    if (phase.stop.operations) {
        throw_member_error(where + ".stop.operations", "is for the files of data: for a tree use stop.items");
    }
    if (!phase.stop.within.empty() && operation_info(phase.op).effect != OperationInfo::OperationEffect::inspects) {
        throw_member_error(where + ".stop.within", std::string("is for what looks only, but op = \"") +
                                                       operation_name(phase.op) + "\" changes the tree: leave it out");
    }
    if (!phase.stop.within.empty() && acts_on_directories(phase.op)) {
        throw_member_error(where + ".stop.within", "counts items and entries, but op = \"readdir\" counts directories");
    }
    if (phase.stop.wearout && !acts_on_items(phase.op)) {
        throw_member_error(where + ".stop.wearout",
                           std::string("has no meaning for op = \"") + operation_name(phase.op) + "\"");
    }
    if (phase.barrier == Barrier::intra) {
        throw_member_error(where + ".barrier", "= \"intra\" is for data: there is nothing between open and close here");
    }
    if (!phase.streams.empty() || !phase.files.empty()) {
        throw_member_error(where, "works on a tree, so it has no streams and no files: those are for data");
    }
}

}  // namespace

void check_meta(const std::string& where, const Plan& plan, std::size_t index) {
    const Phase& phase = plan.phases[index];
    const Meta& meta = *phase.meta;
    check_items(where, phase);
    check_window(where, phase);
    check_stop_rules(where, phase);
    const bool verifies = phase.data.verify != Verify::none;
    if (verifies && (phase.op == Op::read_items || phase.op == Op::cycle) &&
        (meta.read_bytes == 0 || meta.read_bytes > meta.write_bytes)) {
        throw_member_error(where + ".verify", "needs meta.file.read from 1 B to the " +
                                                  std::to_string(meta.write_bytes) +
                                                  " B that file.write puts into each file");
    }
    if (meta.shared_single && verifies) {
        throw_member_error(where + ".verify",
                           "does not go with file.shared_single: which task wrote last is not known");
    }
    if (verifies && meta.write_bytes > 0 && phase.data.payload.kind == PayloadKind::zero) {
        throw_member_error(where + ".verify", "is useless with payload.kind = \"zero\": a hole would pass");
    }
    if (meta.tree.home_shift != 0 && meta.tree.scope != TreeScope::per_task) {
        throw_member_error(where + ".meta.tree.home_shift", "is only used with scope = \"per_task\"");
    }
    const OperationInfo::OperationEffect effect = operation_info(phase.op).effect;
    const bool takes =
        effect == OperationInfo::OperationEffect::removes || effect == OperationInfo::OperationEffect::renames;
    if (phase.shift.by == ShiftBy::random && acts_on_items(phase.op) && takes) {
        throw_member_error(where + ".shift", "= \"random\" lets two tasks change the same item: use permute");
    }
    if (phase.shift.by != ShiftBy::none && effect == OperationInfo::OperationEffect::creates) {
        throw_member_error(where + ".shift", "is for what comes after: a task always makes its own items");
    }
    if (phase.separate_process && index == 0) {
        throw_member_error(where + ".process", "= \"separate\" has no meaning for the first phase");
    }
}

}  // namespace sonde::plan
