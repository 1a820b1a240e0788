// SPDX-License-Identifier: Apache-2.0
// Members of `meta`: trees of directories and items, and the operations on them.
#include "plan/declare_meta.hpp"

#include "plan/declare_data.hpp"
#include "plan/entry_filter.hpp"
#include "plan/value_kinds.hpp"

#include <algorithm>

namespace sonde::plan {
namespace {

using namespace choices;

constexpr int longest_name = 255;
constexpr TextRule name_pattern{
    .accepts =
        [](const std::string& name) {
            return name.size() <= longest_name && name.find_first_of(std::string("/\0", 2)) == std::string::npos;
        },
    .error_text = "must be a pattern of at most 255 bytes without '/': it is for the name, not for the path",
    .pattern = "^[^/]+$",
    .min_length = 1,
    .max_length = longest_name};

void describe_size(Visitor& visitor, EntryFilter& filter) {
    std::optional<Bytes> size;
    visitor.member("size", size, BytesKind{}, "size in bytes", {.replaces = {"size_min", "size_max"}});
    visitor.member("size_min", filter.size_min, BytesKind{}, "least size in bytes", {.replaces = {"size"}});
    visitor.member("size_max", filter.size_max, BytesKind{}, "greatest size in bytes", {.replaces = {"size"}});
    visitor.when_reading([&](const Reader& in) {
        if (size && (filter.size_min || filter.size_max)) {
            in.fail("size", "is the exact size, so size_min and size_max have no meaning beside it: keep one");
        }
        if (size) {
            filter.size_min = filter.size_max = size;
        }
        if (filter.size_min && filter.size_max && *filter.size_min > *filter.size_max) {
            in.fail("size_min", "is more than size_max, so nothing could be found");
        }
    });
}

constexpr std::uint64_t longest_file = 1ULL << 30U;
constexpr std::int64_t max_items = 1'000'000'000'000;
constexpr TextRule tree_name{
    .accepts =
        [](const std::string& name) {
            return !name.empty() && name.size() <= 128 && name[0] != '.' &&
                   name.find_first_of(std::string("/\0", 2)) == std::string::npos;
        },
    .error_text = "must be a plain name of 1 to 128 bytes without '/' and without a leading dot",
    .pattern = "^[^./][^/]*$"};

/// Computes items per directory from `items_per_task`, which is divided evenly, and checks their number.
void compute_items(const Reader& in, Tree& tree, std::optional<std::uint64_t> items_per_task) {
    const std::uint64_t directories = count_directories(tree);
    if (directories == 0) {
        in.fail("depth", "and branching make more than " + std::to_string(max_directories) + " directories");
    }
    if (items_per_task && in.has("items_per_dir")) {
        in.fail("items_per_task", "and items_per_dir exclude each other: keep one");
    }
    if (items_per_task) {
        const std::uint64_t item_directories =
            (tree.leaf_only ? count_leaf_directories(tree) : directories) * static_cast<std::uint64_t>(tree.copies);
        if (*items_per_task % item_directories != 0) {
            in.fail("items_per_task", "is " + std::to_string(*items_per_task) + ", but must be a multiple of the " +
                                          std::to_string(item_directories) + " directories that hold items");
        }
        tree.items_per_dir = *items_per_task / item_directories;
    }
    if (static_cast<double>(tree.items_per_dir) * static_cast<double>(directories) * tree.copies >
        static_cast<double>(max_items)) {
        in.fail("items_per_dir", "makes more than " + std::to_string(max_items) + " items a task");
    }
}

void describe_names(Visitor& visitor, TreeNames& names) {
    visitor.member("branch", names.branch, TextKind(tree_name), "first part of the names of directories of the tree");
    visitor.member("file", names.file, TextKind(tree_name), "first part of the names of files");
    visitor.member("directory", names.directory, TextKind(tree_name),
                   "first part of the names of items that are directories");
    visitor.when_reading([&names](const Reader& in) {
        if (names.file == names.directory || names.file == names.branch || names.directory == names.branch) {
            in.fail("file", "and directory and branch must differ from each other");
        }
    });
}

void describe_file(Visitor& visitor, Meta& meta) {
    visitor.member("write", meta.write_bytes, BytesKind{}, "bytes written to each new file");
    visitor.member("read", meta.read_bytes, BytesKind{}, "bytes that op read reads of each file; 0: open and close");
    visitor.when_reading([&meta](const Reader& in) {
        for (const auto& [bytes, name] : {std::pair{meta.write_bytes, "write"}, std::pair{meta.read_bytes, "read"}}) {
            if (bytes > longest_file) {
                in.fail(name, "is more than 1 GiB: large files are the data part's, with op = \"write\"");
            }
        }
    });
    visitor.member("fsync", meta.fsync, FlagKind{}, "of each file after writing");
    visitor.member("create", meta.create_call, choice(create_calls), "mknod creates a name without opening it");
    visitor.member("direct", meta.direct, FlagKind{}, "file data bypasses the page cache (O_DIRECT)");
    visitor.member("shared_single", meta.shared_single, FlagKind{}, "all tasks use the same files");
    visitor.member("exclusive", meta.exclusive, FlagKind{}, "op create fails for an item that exists");
}

void describe_select(Visitor& visitor, Meta& meta) {
    visitor.member(
        "order", meta.order, choice(select_orders),
        "creation: in the order of creation; permute: each once, at random; replace: at random, some several "
        "times; zipf: at random, few of them most of the time");
    visitor.member("exponent", meta.zipf_exponent, NumberKind{0.01, 10.0},
                   "zipf: the n-th most frequent item is chosen in proportion to 1 / n^exponent");
    visitor.member("seed", meta.seed, IntegerKind(0, INT64_MAX), "other seeds, other choices");
}

void describe_lookup(Visitor& visitor, Meta& meta, bool& states_examine_all) {
    visitor.member("stat", meta.stat_call, choice(stat_calls), "which system call");
    visitor.member("fields", meta.statx_fields, StatxFieldsKind{}, "statx: requested fields; default: basic", computed);
    visitor.member("freshness", meta.statx_sync_flag, choice(statx_sync_flags),
                   "statx: whether servers are asked (AT_STATX_FORCE_SYNC, AT_STATX_DONT_SYNC)");
    visitor.member("paths", meta.path_kind, choice(path_kinds),
                   "relative: names in an open directory; full: whole paths, which the kernel resolves component by "
                   "component in every call");
    visitor.member("walk_from", meta.walks_run_directory, choice(walk_roots),
                   "walk: the trees of the plan, or the whole run directory, whoever created it");
    visitor.member("examine_all", meta.examine_all, FlagKind{},
                   "walk: examine each entry; false: only list names. Default: true; with find false, so that entries "
                   "are examined only where a condition needs it",
                   computed);
    visitor.when_reading([&](const Reader& in) { states_examine_all = in.has("examine_all"); });
}

void describe_window(Visitor& visitor, ItemWindow& window, const Tree& tree) {
    visitor.member("first", window.first, IntegerKind(0, max_items), "number of the first item");
    visitor.member("count", window.count, IntegerKind(0, max_items), "how many items");
    visitor.member("across", window.alternates_directories, FlagKind{},
                   "one item of each directory in turn, instead of directory by directory");
    visitor.when_reading([&](const Reader& in) {
        if (window.first + window.count > tree.items_per_dir) {
            in.fail("count", "and first reach beyond the " + std::to_string(tree.items_per_dir) +
                                 " items of a directory (tree.items_per_dir)");
        }
    });
}

void describe_cycle(Visitor& visitor, Cycle& cycle) {
    visitor.member("working", cycle.working_set_items, IntegerKind(1, max_items),
                   "items of a task in each copy of the tree before and after the phase");
    visitor.member(
        "spread", cycle.task_distance, IntegerKind(-(1 << 24), 1 << 24),
        "in copy s = 1, 2, … task t reads and removes items of task t - s * spread, and creates those of task "
        "t + s * spread");
    visitor.member("keep", cycle.inspects_only, FlagKind{}, "stat and read only");
    visitor.member("wait", cycle.wait_factor, NumberKind{0.0, 1e6},
                   "idle time after each call, as a multiple of its duration");
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

void describe_tree(Visitor& visitor, Tree& tree) {
    visitor.member("top", tree.top, TextKind(tree_name), "the tree lies in `<top>-<copy>` of the run directory");
    visitor.member("copies", tree.copies, IntegerKind(1, 1'000'000),
                   "number of trees, which each phase processes in turn");
    visitor.member("depth", tree.depth, IntegerKind(0, 100'000), "levels below the root directory of the tree");
    visitor.member("branching", tree.branching, IntegerKind(1, 1'000'000'000),
                   "subdirectories of each directory that is not a leaf");
    visitor.member("leaf_only", tree.leaf_only, FlagKind{}, "items in the directories of the last level only");
    visitor.member("items_per_dir", tree.items_per_dir, IntegerKind(0, max_items),
                   "items of each task in each directory that holds items; this or items_per_task",
                   {.absence = Absence::computed, .replaces = {"items_per_task"}});
    std::optional<std::uint64_t> items_per_task;
    visitor.member("items_per_task", items_per_task, IntegerKind(0, max_items),
                   "all items of each task; a multiple of the number of directories that hold items",
                   {.replaces = {"items_per_dir"}});
    visitor.member("scope", tree.scope, choice(tree_scopes), "which tasks share one tree");
    visitor.member("home_shift", tree.home_shift, IntegerKind(-(1 << 24), 1 << 24),
                   "scope per_task: the items of task t lie in the tree of task t + home_shift");
    visitor.when_reading([&](const Reader& in) { compute_items(in, tree, items_per_task); });
}

}  // namespace

static void describe(Visitor& visitor, EntryFilter& filter) {
    visitor.member("name", filter.name, TextKind(name_pattern),
                   "shell pattern for the name without its path, like *01*; a bracket expression, * and ? as in "
                   "fnmatch(3), byte by byte",
                   unset);
    visitor.member("type", filter.type, choice(entry_types), "type of the entry; links are not followed");
    describe_size(visitor, filter);
    visitor.when_reading([](const Reader& in) {
        if (in.has("newer_than") && in.has("newer_than_file")) {
            in.fail("newer_than", "and newer_than_file exclude each other: keep one");
        }
    });
    visitor.member("newer_than", filter.newer_than_ns, TimeKind{},
                   "last modified later than this: seconds since 1970-01-01 UTC", {.replaces = {"newer_than_file"}});
    visitor.member(
        "newer_than_file", filter.newer_than_file,
        TextKind(TextRule{.accepts = [](const std::string& file) { return !file.empty(); },
                          .error_text = "is empty: name a file",
                          .min_length = 1}),
        "last modified later than this file at the start of the phase; a relative path begins at target.path",
        {.absence = Absence::unset, .replaces = {"newer_than"}});
    visitor.when_reading([&filter](const Reader& in) {
        in.reject_unknown_members();
        if (filter.name.empty() && filter.type == EntryType::any && !filter.needs_attributes()) {
            in.fail("name", "or another condition is missing: everything would be found");
        }
    });
}

void describe_meta(Visitor& visitor, Meta& meta, Data& data) {
    bool states_examine_all = false;
    describe_backend(visitor, data);
    visitor.table("tree", "directories, and how many items each holds",
                  [&meta](Visitor& members) { describe_tree(members, meta.tree); });
    visitor.table("names",
                  "first parts of names: `<branch>[.<task>].<directory>`, `<file>.<task>.<number>`, "
                  "`<directory>.<task>.<number>`",
                  [&meta](Visitor& members) { describe_names(members, meta.names); });
    visitor.member("objects", meta.objects, choice(object_kinds), "what the items are");
    visitor.table("file", "how files are created and read",
                  [&meta](Visitor& members) { describe_file(members, meta); });
    visitor.table("select", "which item comes next", [&meta](Visitor& members) { describe_select(members, meta); });
    visitor.table("lookup", "how names are looked up",
                  [&](Visitor& members) { describe_lookup(members, meta, states_examine_all); });
    visitor.table("find", meta.find,
                  "walk: counts the entries that match all of these conditions; entries are then examined only where a "
                  "condition needs it, unless lookup.examine_all is true",
                  true);
    visitor.when_reading([&](const Reader& /*in*/) {
        if (!states_examine_all) {
            meta.examine_all = !meta.find;
        }
    });
    visitor.member("sync", meta.sync, FlagKind{}, "syncs the file system at the end of the phase, timed (syncfs)");
    visitor.member("missing", meta.continues_on_missing, choice(reactions_to_missing),
                   "an item that does not exist: stops the run, or counts as failed while the phase continues");
    const auto resolved = meta.window ? TableRules::Resolved::complete : TableRules::Resolved::absent;
    visitor.table(
        "window",
        "restricts the phase to some items of each directory; payload.kind must be one that identifies files (ior_…)",
        [&meta](Visitor& members) {
            describe_window(members, meta.window ? *meta.window : meta.window.emplace(), meta.tree);
        },
        {.optional = true, .not_empty = true, .resolved = resolved});
    visitor.table(
        "cycle",
        "op cycle: for each item of the window: stat, read, remove, and create the item `working` numbers later",
        [&meta](Visitor& members) { describe_cycle(members, meta.cycle); });
    visitor.member("single_task", meta.single_task, FlagKind{}, "the first task does all the work");
    visitor.table("payload", data.payload, "what is written");
    describe_verify(visitor, data);
    visitor.table("paced", data.paced, "the known schedule of the backend `paced`");
    visitor.when_reading([&](const Reader& in) {
        check_depth(in, meta);
        data.io.direct = meta.direct;
        data.access.transfer = data.access.block = std::max<std::uint64_t>({1, meta.write_bytes, meta.read_bytes});
        data.access.segments = 1;
    });
}

}  // namespace sonde::plan
