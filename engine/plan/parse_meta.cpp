// SPDX-License-Identifier: Apache-2.0
#include "plan/parse_meta.hpp"

#include "plan/choices.hpp"
#include "plan/overlay.hpp"
#include "plan/parse_filter.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <array>

namespace sonde::plan {
namespace {

using nlohmann::json;
using namespace choices;

constexpr std::int64_t longest_file = 1LL << 30U;
constexpr std::int64_t most_items = 1'000'000'000'000;

std::string read_plain_name(const Reader& in, const char* key, const std::string& fallback) {
    const std::string name = in.text(key, fallback);
    if (name.empty() || name.find('/') != std::string::npos || name[0] == '.' || name.find('\0') != std::string::npos ||
        name.size() > 128) {
        in.fail(key, "must be a plain name of 1 to 128 bytes without '/' and without a leading dot");
    }
    return name;
}

/// Reads items per directory, from `items_per_dir` or from `items_per_task` divided evenly.
void read_items(const Reader& in, Tree& tree) {
    const std::uint64_t directories = count_directories(tree);
    if (directories == 0) {
        in.fail("depth", "and branching make more than " + std::to_string(max_directories) + " directories");
    }
    if (in.has("items_per_dir") && in.has("items_per_task")) {
        in.fail("items_per_task", "and items_per_dir exclude each other: keep one");
    }
    const std::optional<std::int64_t> of_task = in.integer("items_per_task", 0, most_items);
    tree.items_per_dir = in.count("items_per_dir", tree.items_per_dir, 0, most_items);
    if (of_task) {
        const auto items = static_cast<std::uint64_t>(*of_task);
        const std::uint64_t places =
            (tree.leaf_only ? count_leaf_directories(tree) : directories) * static_cast<std::uint64_t>(tree.copies);
        if (items % places != 0) {
            in.fail("items_per_task", "is " + std::to_string(items) + ", but must be a multiple of the " +
                                          std::to_string(places) + " directories that hold items");
        }
        tree.items_per_dir = items / places;
    }
    if (static_cast<double>(tree.items_per_dir) * static_cast<double>(directories) * tree.copies >
        static_cast<double>(most_items)) {
        in.fail("items_per_dir", "makes more than " + std::to_string(most_items) + " items a task");
    }
}

Tree read_tree(const Reader& in) {
    Tree tree;
    tree.top = read_plain_name(in, "top", tree.top);
    tree.copies = static_cast<int>(in.integer("copies", tree.copies, 1, 1'000'000));
    tree.depth = static_cast<int>(in.integer("depth", tree.depth, 0, 100'000));
    tree.branching = static_cast<int>(in.integer("branching", tree.branching, 1, 1'000'000'000));
    tree.leaf_only = in.boolean("leaf_only", tree.leaf_only);
    tree.scope = in.choice("scope", tree_scopes, tree.scope);
    tree.home_shift = static_cast<int>(in.integer("home_shift", tree.home_shift, -(1 << 24), 1 << 24));
    read_items(in, tree);
    in.reject_unknown_members();
    return tree;
}

std::uint32_t read_fields(const Reader& in, std::uint32_t fallback) {
    if (!in.has("fields")) {
        return fallback;
    }
    std::uint32_t mask = 0;
    for (const json& name : in.value("fields")) {
        const auto* field_row = std::find_if(std::begin(fields), std::end(fields), [&name](const auto& field) {
            return name.is_string() && name.get<std::string>() == field.name;
        });
        if (field_row == std::end(fields)) {
            in.fail("fields", "holds " + name.dump() +
                                  ", which is none of type, mode, nlink, uid, gid, atime, mtime, "
                                  "ctime, ino, size, blocks, btime, basic, all");
        }
        mask |= field_row->value;
    }
    return mask;
}

void read_file(const Reader& in, Meta& meta) {
    meta.write = in.bytes("write", meta.write);
    meta.read = in.bytes("read", meta.read);
    for (const auto& [bytes, name] : {std::pair{meta.write, "write"}, std::pair{meta.read, "read"}}) {
        if (bytes > static_cast<std::uint64_t>(longest_file)) {
            in.fail(name, "is more than 1 GiB: large files are the data part's, with op = \"write\"");
        }
    }
    meta.fsync = in.boolean("fsync", meta.fsync);
    meta.make = in.choice("create", makes, meta.make);
    meta.direct = in.boolean("direct", meta.direct);
    meta.shared_single = in.boolean("shared_single", meta.shared_single);
    meta.exclusive = in.boolean("exclusive", meta.exclusive);
    in.reject_unknown_members();
}

ItemWindow read_window(const Reader& in, const Tree& tree) {
    ItemWindow window;
    window.first = in.count("first", window.first, 0, most_items);
    window.count = in.count("count", window.count, 0, most_items);
    window.across = in.boolean("across", window.across);
    if (window.first + window.count > tree.items_per_dir) {
        in.fail("count", "and first reach beyond the " + std::to_string(tree.items_per_dir) +
                             " items of a directory (tree.items_per_dir)");
    }
    in.reject_unknown_members();
    return window;
}

Cycle read_cycle(const Reader& in) {
    Cycle cycle;
    cycle.working = in.count("working", cycle.working, 1, most_items);
    cycle.spread = static_cast<int>(in.integer("spread", cycle.spread, -(1 << 24), 1 << 24));
    cycle.keep = in.boolean("keep", cycle.keep);
    cycle.wait = in.number("wait", cycle.wait, 0.0, 1e6);
    in.reject_unknown_members();
    return cycle;
}

/// The longest path of the tree must fit into PATH_MAX (4096 bytes), with room for the target.
void check_depth(const Reader& in, const Meta& meta) {
    constexpr std::size_t longest = 3500;
    const std::size_t of_level = meta.names.branch.size() + 2 + std::to_string(count_directories(meta.tree)).size();
    if (static_cast<std::size_t>(meta.tree.depth) * of_level > longest) {
        in.fail("tree.depth", "is " + std::to_string(meta.tree.depth) +
                                  ", so paths would be longer than the 4096 B that "
                                  "the system allows: at most " +
                                  std::to_string(longest / of_level) + " levels with these names");
    }
}

/// Whether the operation changes nothing, so that it can be repeated. A walk distributes its work once.
bool is_repeatable(Op op) {
    return operation_info(op).effect == OperationInfo::OperationEffect::inspects && op != Op::walk;
}

std::string check_repeated_names() {
    std::vector<std::string> names;
    for (const OperationInfo& row : operations) {
        if (on_tree(row.op) && is_repeatable(row.op)) {
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
        refuse(where + ".meta.objects", "= \"directories\" does not go with op = \"" + std::string(text(phase.op)) +
                                            "\": only files are opened and read");
    }
    if (on_items(phase.op) && meta.tree.items_per_dir == 0) {
        refuse(where + ".meta.tree", "has no items: give it items_per_dir or items_per_task");
    }
    if (phase.op == Op::create && meta.make == MakeFile::mknod && meta.write > 0) {
        refuse(where + ".meta.file.create", "= \"mknod\" opens nothing, so file.write must be 0");
    }
    if (meta.fsync && phase.op == Op::create && meta.make == MakeFile::mknod) {
        refuse(where + ".meta.file.create", "= \"mknod\" opens nothing, so there is nothing to fsync");
    }
    if (on_items(phase.op) && !is_repeatable(phase.op) &&
        (meta.order == SelectOrder::replace || meta.order == SelectOrder::zipf)) {
        refuse(where + ".meta.select.order", "must be creation or permute: each item is made, renamed or removed once");
    }
    if (phase.op == Op::rename && meta.order != SelectOrder::creation) {
        refuse(where + ".meta.select.order", "must be creation: each item takes the name of the one before it");
    }
    if (phase.op == Op::rename && meta.shared_single) {
        refuse(where + ".meta.file.shared_single",
               "does not go with op = \"rename\": tasks would take names from each other");
    }
}

void check_window(const std::string& where, const Phase& phase) {
    const Meta& meta = *phase.meta;
    const bool tells_itself = phase.data.payload.kind == PayloadKind::ior_timestamp ||
                              phase.data.payload.kind == PayloadKind::ior_offset ||
                              phase.data.payload.kind == PayloadKind::ior_incompressible ||
                              phase.data.payload.kind == PayloadKind::ior_random;
    if (meta.window && (meta.order != SelectOrder::creation || meta.shared_single || meta.by_first ||
                        meta.paths != PathKind::full || phase.op == Op::rename)) {
        refuse(where + ".meta.window",
               "goes with select.order = \"creation\" and lookup.paths = \"full\", and not with file.shared_single, "
               "by_first or op = \"rename\"");
    }
    if (meta.window && (meta.write > 0 || meta.read > 0) && !tells_itself) {
        refuse(where + ".meta.window", "needs a payload.kind that tells itself: one of ior_…");
    }
    if (phase.op != Op::cycle) {
        return;
    }
    const bool one_level = meta.tree.depth == 0 && meta.tree.scope == TreeScope::per_task;
    if (!meta.window || !one_level || meta.objects != Objects::files || meta.make != MakeFile::open) {
        refuse(where + ".op", "= \"cycle\" needs meta.window, tree.scope = \"per_task\", tree.depth = 0 and files");
    }
    if (meta.write == 0 || meta.read != meta.write) {
        refuse(where + ".meta.file", "must write and read the same number of bytes, at least one");
    }
    if (!meta.cycle.keep && meta.window->first + meta.window->count + meta.cycle.working > meta.tree.items_per_dir) {
        refuse(where + ".meta.cycle.working", "makes items beyond tree.items_per_dir");
    }
    if (phase.stop.items) {
        refuse(where + ".stop.items", "does not end op = \"cycle\", whose rounds are counted by meta.window.count");
    }
}

void check_stop_rules(const std::string& where, const Phase& phase) {
    if ((phase.stop.time || phase.stop.min_time) && !is_repeatable(phase.op)) {
        refuse(where + ".stop", std::string("must not repeat op = \"") + text(phase.op) +
                                    "\": use stop.stonewall, or stop.time with " + check_repeated_names());
    }
    if (phase.stop.items && !on_items(phase.op)) {
        refuse(where + ".stop.items", std::string("counts the items of a task, but op = \"") + text(phase.op) +
                                          "\" works on directories: leave it out");
    }
    if (phase.stop.operations) {
        refuse(where + ".stop.operations", "is for the files of data: for a tree use stop.items");
    }
    if (!phase.stop.within.empty() && operation_info(phase.op).effect != OperationInfo::OperationEffect::inspects) {
        refuse(where + ".stop.within", std::string("is for what looks only, but op = \"") + text(phase.op) +
                                           "\" changes the tree: leave it out");
    }
    if (!phase.stop.within.empty() && on_directories(phase.op)) {
        refuse(where + ".stop.within", "counts items and entries, but op = \"readdir\" counts directories");
    }
    if (phase.stop.wearout && !on_items(phase.op)) {
        refuse(where + ".stop.wearout", std::string("has no meaning for op = \"") + text(phase.op) + "\"");
    }
    if (phase.barrier == Barrier::intra) {
        refuse(where + ".barrier", "= \"intra\" is for data: there is nothing between open and close here");
    }
    if (!phase.streams.empty() || !phase.files.empty()) {
        refuse(where, "works on a tree, so it has no streams and no files: those are for data");
    }
}

}  // namespace

Meta read_meta(const Reader& in) {
    Meta meta;
    meta.tree = read_tree(in.object_or_empty("tree"));
    const Reader names = in.object_or_empty("names");
    meta.names.branch = read_plain_name(names, "branch", meta.names.branch);
    meta.names.file = read_plain_name(names, "file", meta.names.file);
    meta.names.directory = read_plain_name(names, "directory", meta.names.directory);
    if (meta.names.file == meta.names.directory || meta.names.file == meta.names.branch ||
        meta.names.directory == meta.names.branch) {
        names.fail("file", "and directory and branch must differ from each other");
    }
    names.reject_unknown_members();
    meta.objects = in.choice("objects", objects, meta.objects);
    read_file(in.object_or_empty("file"), meta);
    const Reader select = in.object_or_empty("select");
    meta.order = select.choice("order", select_orders, meta.order);
    meta.exponent = select.number("exponent", meta.exponent, 0.01, 10.0);
    meta.seed = select.seed(meta.seed);
    select.reject_unknown_members();
    const Reader lookup = in.object_or_empty("lookup");
    meta.lookup = lookup.choice("stat", stat_calls, meta.lookup);
    meta.fields = read_fields(lookup, meta.fields);
    meta.freshness = lookup.choice("freshness", freshness, meta.freshness);
    meta.paths = lookup.choice("paths", path_kinds, meta.paths);
    meta.from_directory = lookup.choice("walk_from", walk_roots, meta.from_directory);
    if (in.has("find")) {
        meta.find = read_entry_filter(in.object("find"));
    }
    meta.look_at_all = lookup.boolean("each_entry", !meta.find);
    lookup.reject_unknown_members();
    meta.sync = in.boolean("sync", meta.sync);
    meta.by_first = in.boolean("by_first", meta.by_first);
    meta.go_on = in.choice("missing", absences, meta.go_on);
    if (in.has("window")) {
        meta.window = read_window(in.object("window"), meta.tree);
    }
    meta.cycle = read_cycle(in.object_or_empty("cycle"));
    in.reject_unknown_members({"backend", "paced", "payload", "verify"});
    check_depth(in, meta);
    return meta;
}

json overlay_meta(const json& base, const json& own_meta) {
    json merged = base;
    for (const auto& [key, value] : own_meta.items()) {
        json& member = merged[key];
        // A schedule is replaced completely.
        const bool table = member.is_object() && value.is_object() && key != "paced";
        member = table ? overlay_members(member, value) : value;
    }
    return merged;
}

json derive_data(const json& meta, const Meta& read) {
    json data = json::object();
    for (const char* key : {"backend", "paced", "payload", "verify"}) {
        if (meta.contains(key)) {
            data[key] = meta.at(key);
        }
    }
    if (read.direct) {
        data["io"] = {{"direct", true}};
    }
    data["access"] = {{"transfer", std::max<std::uint64_t>({1, read.write, read.read})}};
    return data;
}

void check_meta(const std::string& where, const Plan& plan, std::size_t index) {
    const Phase& phase = plan.phases[index];
    const Meta& meta = *phase.meta;
    check_items(where, phase);
    check_window(where, phase);
    check_stop_rules(where, phase);
    const bool verifies = phase.data.verify != Verify::none;
    if (verifies && (phase.op == Op::read_items || phase.op == Op::cycle) &&
        (meta.read == 0 || meta.read > meta.write)) {
        refuse(where + ".verify", "needs meta.file.read from 1 B to the " + std::to_string(meta.write) +
                                      " B that file.write puts into each file");
    }
    if (meta.shared_single && verifies) {
        refuse(where + ".verify", "does not go with file.shared_single: which task wrote last is not known");
    }
    if (verifies && meta.write > 0 && phase.data.payload.kind == PayloadKind::zero) {
        refuse(where + ".verify", "is useless with payload.kind = \"zero\": a hole would pass");
    }
    if (meta.tree.home_shift != 0 && meta.tree.scope != TreeScope::per_task) {
        refuse(where + ".meta.tree.home_shift", "is only used with scope = \"per_task\"");
    }
    const OperationInfo::OperationEffect effect = operation_info(phase.op).effect;
    const bool takes =
        effect == OperationInfo::OperationEffect::removes || effect == OperationInfo::OperationEffect::renames;
    if (phase.shift.by == ShiftBy::random && on_items(phase.op) && takes) {
        refuse(where + ".shift", "= \"random\" lets two tasks change the same item: use permute");
    }
    if (phase.shift.by != ShiftBy::none && effect == OperationInfo::OperationEffect::creates) {
        refuse(where + ".shift", "is for what comes after: a task always makes its own items");
    }
    if (phase.separate_process && index == 0) {
        refuse(where + ".process", "= \"separate\" has no meaning for the first phase");
    }
}

}  // namespace sonde::plan
