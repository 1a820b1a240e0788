// SPDX-License-Identifier: Apache-2.0
// The metadata part of a plan: a tree of directories, its items, and the operations on them. The JSON form is
// schema/plan; patterns/tree.hpp numbers directories and items.
#pragma once

#include "plan/entry_filter.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sonde::plan {

enum class TreeScope { shared, per_task, per_node };
enum class Objects { files, directories };
enum class MakeFile { open, mknod };
enum class StatCall { stat, lstat, statx };
enum class SelectOrder { creation, permute, replace, zipf };
enum class PathKind { relative, full };

/// Directories of one tree, and the number of items in each. A run may have several copies of the tree, which each
/// phase processes in turn.
struct Tree {
    std::string top = "items";  ///< the tree lies in `<top>-<copy>` of the run directory
    int copies = 1;
    int depth = 0;                        ///< levels below the root directory of the tree
    int branching = 1;                    ///< subdirectories of each directory that is not a leaf
    bool leaf_only = false;               ///< items in the directories of the last level only
    std::uint64_t items_per_dir = 0;      ///< of each task, in each directory that holds items
    TreeScope scope = TreeScope::shared;  ///< tasks that share one tree
    int home_shift = 0;                   ///< scope per_task: items of task t lie in the tree of task t + home_shift
};

/// First parts of names: `<branch>[.<task>].<directory>`, `<file>.<task>.<number>`, `<directory>.<task>.<number>`.
struct TreeNames {
    std::string branch = "branch";
    std::string file = "file";
    std::string directory = "dir";
};

/// Restricts phases to some items of each directory: numbers `first` … first + count - 1. Phases with a window do not
/// track items of other phases; IOR content identifies files.
struct ItemWindow {
    std::uint64_t first = 0, count = 0;
    bool alternates_directories = false;  ///< one item of each directory in turn; else one directory after the other
};

/// Op `cycle`: a moving working set. For each item of the window: stat, read, remove, and create the item `working`
/// numbers later. Copies of the tree are data sets: in set s = 1, 2, … a task reads the items of task - s * spread, and
/// creates those of task + s * spread.
struct Cycle {
    std::uint64_t working_set_items = 1;  ///< items of a task in each set before and after a cycle
    int task_distance = 1;
    bool inspects_only = false;  ///< stat and read only
    double wait_factor = 0;      ///< idle time after each call, as a multiple of its duration
};

struct Meta {
    Tree tree;
    TreeNames names;
    Objects objects = Objects::files;
    std::uint64_t write_bytes = 0;          ///< bytes written to each new file
    std::uint64_t read_bytes = 0;           ///< bytes read by op "read"; 0: open and close
    bool fsync = false;                     ///< of each file after it was written
    MakeFile create_call = MakeFile::open;  ///< mknod: without open; empty files
    bool direct = false;                    ///< file data bypasses the page cache (O_DIRECT)
    bool shared_single = false;             ///< all tasks use the same files
    bool exclusive = true;                  ///< create: fails when the item exists
    SelectOrder order = SelectOrder::creation;
    double zipf_exponent = 1.0;  ///< zipf: the n-th most frequent item is chosen in proportion to 1/n^exponent
    std::uint64_t seed = 1;
    StatCall stat_call = StatCall::stat;
    std::uint32_t statx_fields = 0x7ff;       ///< statx mask (STATX_BASIC_STATS)
    std::uint32_t statx_sync_flag = 0;        ///< statx: AT_STATX_SYNC_AS_STAT, FORCE_SYNC or DONT_SYNC
    PathKind path_kind = PathKind::relative;  ///< form of the path in system calls
    bool examine_all = true;                  ///< walk: stat each entry, not only when a condition needs it
    bool walks_run_directory = false;         ///< walk: the whole run directory, not only the trees
    std::optional<EntryFilter> find;          ///< walk: counts the entries that match these conditions
    bool sync = false;                        ///< syncs the file system at the end of the phase, timed
    bool single_task = false;                 ///< the first task does all the work
    bool continues_on_missing = false;        ///< missing items count as failed, and the phase continues
    std::optional<ItemWindow> window;
    Cycle cycle;
};

/// Limit of the number of directories of a tree.
constexpr std::uint64_t max_directories = 1'000'000'000;

/// Number of directories of a tree, and of those that hold items; 0 when there are more than max_directories.
std::uint64_t count_directories(const Tree& tree);
std::uint64_t count_leaf_directories(const Tree& tree);

}  // namespace sonde::plan
