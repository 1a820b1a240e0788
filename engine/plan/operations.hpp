// SPDX-License-Identifier: Apache-2.0
// Operations of phases, one row each. Parser, rules, workloads and record use this table; tests compare it with
// schema/plan and schema/record.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace sonde::plan {

/// On data, and from `mktree` on with names of a tree.
enum class Op {
    write,
    rewrite,
    read,
    reread,
    read_only,
    mixed,
    duplex,
    replay,
    train,
    stat,
    remove,
    mktree,
    create,
    stat_items,
    open_close,
    read_items,
    readdir,
    walk,
    rename,
    remove_items,
    cycle,
    rmtree
};

struct OperationInfo {
    /// What one operation works on: bytes of a data file, a data file by name, an item or directory of a tree, or the
    /// whole tree.
    enum class Subject { data, file, item, directory, tree };
    /// Effect on its subject. Operations that inspect may be repeated; other tree operations apply once to each item or
    /// directory.
    enum class OperationEffect { transfers, inspects, creates, renames, removes, replaces };

    Op op;
    const char* name;  ///< as in plans and records
    Subject subject;
    OperationEffect effect;
    bool reads = false;       ///< bytes of data files
    bool writes = false;      ///< bytes of data files
    bool only_files = false;  ///< needs files, not directories
};

/// In the order of Op.
inline constexpr std::array operations{
    OperationInfo{Op::write, "write", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers, false,
                  true},
    OperationInfo{Op::rewrite, "rewrite", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers,
                  false, true},
    OperationInfo{Op::read, "read", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers, true,
                  false},
    OperationInfo{Op::reread, "reread", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers, true,
                  false},
    OperationInfo{Op::read_only, "read_only", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers,
                  true, false},
    OperationInfo{Op::mixed, "mixed", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers, true,
                  true},
    OperationInfo{Op::duplex, "duplex", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers, true,
                  true},
    OperationInfo{Op::replay, "replay", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers, true,
                  true},
    OperationInfo{Op::train, "train", OperationInfo::Subject::data, OperationInfo::OperationEffect::transfers, true,
                  false},
    OperationInfo{Op::stat, "stat", OperationInfo::Subject::file, OperationInfo::OperationEffect::inspects},
    OperationInfo{Op::remove, "remove", OperationInfo::Subject::file, OperationInfo::OperationEffect::removes},
    OperationInfo{Op::mktree, "mktree", OperationInfo::Subject::directory, OperationInfo::OperationEffect::creates},
    OperationInfo{Op::create, "create", OperationInfo::Subject::item, OperationInfo::OperationEffect::creates},
    OperationInfo{Op::stat_items, "stat", OperationInfo::Subject::item, OperationInfo::OperationEffect::inspects},
    OperationInfo{Op::open_close, "open_close", OperationInfo::Subject::item, OperationInfo::OperationEffect::inspects,
                  false, false, true},
    OperationInfo{Op::read_items, "read", OperationInfo::Subject::item, OperationInfo::OperationEffect::inspects, false,
                  false, true},
    OperationInfo{Op::readdir, "readdir", OperationInfo::Subject::directory, OperationInfo::OperationEffect::inspects},
    OperationInfo{Op::walk, "walk", OperationInfo::Subject::tree, OperationInfo::OperationEffect::inspects},
    OperationInfo{Op::rename, "rename", OperationInfo::Subject::item, OperationInfo::OperationEffect::renames},
    OperationInfo{Op::remove_items, "remove", OperationInfo::Subject::item, OperationInfo::OperationEffect::removes},
    OperationInfo{Op::cycle, "cycle", OperationInfo::Subject::item, OperationInfo::OperationEffect::replaces},
    OperationInfo{Op::rmtree, "rmtree", OperationInfo::Subject::directory, OperationInfo::OperationEffect::removes},
};

constexpr const OperationInfo& operation_info(Op op) {
    return operations[static_cast<std::size_t>(op)];
}

/// The name of an operation, as in plans and records.
constexpr const char* operation_name(Op op) {
    return operation_info(op).name;
}
constexpr bool reads(Op op) {
    return operation_info(op).reads;
}
constexpr bool writes(Op op) {
    return operation_info(op).writes;
}
/// Writes the bytes that the access of the phase plans; a replay writes those of its list.
constexpr bool writes_planned_access(Op op) {
    return writes(op) && op != Op::replay;
}
/// stat, remove: one operation per data file, by name.
constexpr bool acts_on_files(Op op) {
    return operation_info(op).subject == OperationInfo::Subject::file;
}
/// Names in a tree: one operation per item.
constexpr bool acts_on_items(Op op) {
    return operation_info(op).subject == OperationInfo::Subject::item;
}
constexpr bool acts_on_directories(Op op) {
    return operation_info(op).subject == OperationInfo::Subject::directory;
}
/// Names in a tree.
constexpr bool acts_on_tree(Op op) {
    return acts_on_items(op) || acts_on_directories(op) || operation_info(op).subject == OperationInfo::Subject::tree;
}

/// All names of operations on data, or of those on trees, in the order of the table.
std::vector<std::string_view> list_operation_names(bool tree);
/// The operation of this name on data, or on a tree; none for unknown names.
std::optional<Op> find_operation(std::string_view name, bool tree);

}  // namespace sonde::plan
