// SPDX-License-Identifier: Apache-2.0
// What a phase can do: one row an operation. Reading plans, their rules, the workloads and the record all ask this
// table; tests hold it against schema/plan and schema/record.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace sonde::plan {

/// With data, and from `mktree` on with the names of a tree.
enum class Op {
    write,
    rewrite,
    read,
    reread,
    read_only,
    mixed,
    duplex,
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

struct Operation {
    /// What one call of it is about: bytes of a data file, a whole data file by its name, or in a tree one item, one
    /// directory, or whatever is found.
    enum class On { data, file, item, directory, tree };
    /// What it leaves behind. `looks`: everything as it was, so it may be repeated; the others of a tree are done once
    /// an item or directory.
    enum class Effect { moves, looks, makes, renames, removes, turns_over };

    Op op;
    const char* name;  ///< as in plans and records
    On on;
    Effect effect;
    bool reads = false;       ///< bytes of data files
    bool writes = false;      ///< bytes of data files
    bool only_files = false;  ///< items: directories cannot be opened or read
};

/// In the order of Op.
inline constexpr std::array operations{
    Operation{Op::write, "write", Operation::On::data, Operation::Effect::moves, false, true},
    Operation{Op::rewrite, "rewrite", Operation::On::data, Operation::Effect::moves, false, true},
    Operation{Op::read, "read", Operation::On::data, Operation::Effect::moves, true, false},
    Operation{Op::reread, "reread", Operation::On::data, Operation::Effect::moves, true, false},
    Operation{Op::read_only, "read_only", Operation::On::data, Operation::Effect::moves, true, false},
    Operation{Op::mixed, "mixed", Operation::On::data, Operation::Effect::moves, true, true},
    Operation{Op::duplex, "duplex", Operation::On::data, Operation::Effect::moves, true, true},
    Operation{Op::stat, "stat", Operation::On::file, Operation::Effect::looks},
    Operation{Op::remove, "remove", Operation::On::file, Operation::Effect::removes},
    Operation{Op::mktree, "mktree", Operation::On::directory, Operation::Effect::makes},
    Operation{Op::create, "create", Operation::On::item, Operation::Effect::makes},
    Operation{Op::stat_items, "stat", Operation::On::item, Operation::Effect::looks},
    Operation{Op::open_close, "open_close", Operation::On::item, Operation::Effect::looks, false, false, true},
    Operation{Op::read_items, "read", Operation::On::item, Operation::Effect::looks, false, false, true},
    Operation{Op::readdir, "readdir", Operation::On::directory, Operation::Effect::looks},
    Operation{Op::walk, "walk", Operation::On::tree, Operation::Effect::looks},
    Operation{Op::rename, "rename", Operation::On::item, Operation::Effect::renames},
    Operation{Op::remove_items, "remove", Operation::On::item, Operation::Effect::removes},
    Operation{Op::cycle, "cycle", Operation::On::item, Operation::Effect::turns_over},
    Operation{Op::rmtree, "rmtree", Operation::On::directory, Operation::Effect::removes},
};

constexpr const Operation& operation(Op op) {
    return operations[static_cast<std::size_t>(op)];
}

/// The name of an operation, as in plans and records.
constexpr const char* text(Op op) {
    return operation(op).name;
}
constexpr bool reads(Op op) {
    return operation(op).reads;
}
constexpr bool writes(Op op) {
    return operation(op).writes;
}
/// stat, remove: one operation a data file, by name.
constexpr bool on_files(Op op) {
    return operation(op).on == Operation::On::file;
}
/// Names in a tree: one operation an item.
constexpr bool on_items(Op op) {
    return operation(op).on == Operation::On::item;
}
constexpr bool on_directories(Op op) {
    return operation(op).on == Operation::On::directory;
}
/// Names in a tree.
constexpr bool on_tree(Op op) {
    return on_items(op) || on_directories(op) || operation(op).on == Operation::On::tree;
}

/// All names of operations on data, or of those on trees, in the order of the table.
std::vector<std::string_view> names_of_operations(bool tree);
/// The operation of this name on data, or on a tree; none when there is none there.
std::optional<Op> operation_named(std::string_view name, bool tree);

}  // namespace sonde::plan
