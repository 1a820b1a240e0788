// SPDX-License-Identifier: Apache-2.0
// The metadata part of a plan: a tree of directories, the items in it, and what is done with their names. Values only;
// the JSON form is schema/plan, the numbering of directories and items is patterns/tree.hpp.
#pragma once

#include "plan/find.hpp"

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

/// Directories of one tree, and how many items each holds. A run may have several copies of it, worked on one after the
/// other in each phase.
struct Tree {
    std::string top = "items";  ///< the tree lies in `<top>-<copy>` of the run directory
    int copies = 1;
    int depth = 0;                        ///< levels below the root directory of the tree
    int branching = 1;                    ///< subdirectories of each directory that is not a leaf
    bool leaf_only = false;               ///< items in the directories of the last level only
    std::uint64_t items_per_dir = 0;      ///< of each task, in each directory that holds items
    TreeScope scope = TreeScope::shared;  ///< who shares one tree
    int home_shift = 0;                   ///< scope per_task: items of task t lie in the tree of task t + home_shift
};

/// First parts of names: `<branch>[.<task>].<directory>`, `<file>.<task>.<number>`, `<directory>.<task>.<number>`.
struct TreeNames {
    std::string branch = "branch";
    std::string file = "file";
    std::string directory = "dir";
};

/// Only some items of each directory: numbers `first` … first + count - 1. With it no phase knows what another has
/// left, and files are known by what IOR's content says of itself.
struct Window {
    std::uint64_t first = 0, count = 0;
    bool across = false;  ///< one item of each directory in turn; else directory by directory
};

/// Op `cycle`: a working set that moves on. Of each item of the window: stat, read, remove, and make the one that is
/// `working` further on. Copies of the tree are data sets: in set s = 1, 2, … a task takes the items of the task
/// s * spread before it, and makes those of the task s * spread after it.
struct Cycle {
    std::uint64_t working = 1;  ///< items of a task in each set, which are there before and after
    int spread = 1;
    bool keep = false;  ///< stat and read only
    double wait = 0;    ///< after each call: so many times as long as it took
};

struct Meta {
    Tree tree;
    TreeNames names;
    Objects objects = Objects::files;
    std::uint64_t write = 0;         ///< bytes written to each file when it is made
    std::uint64_t read = 0;          ///< bytes read by op "read"; 0: open and close
    bool fsync = false;              ///< of each file after it was written
    MakeFile make = MakeFile::open;  ///< mknod: without opening; holds no bytes
    bool direct = false;             ///< bytes of files go past the page cache (O_DIRECT)
    bool shared_single = false;      ///< all tasks use the same files
    bool exclusive = true;           ///< create: fails when the item is there already
    SelectOrder order = SelectOrder::creation;
    double exponent = 1.0;  ///< zipf: the n-th most frequent item is chosen in proportion to 1/n^exponent
    std::uint64_t seed = 1;
    StatCall lookup = StatCall::stat;
    std::uint32_t fields = 0x7ff;         ///< statx mask (STATX_BASIC_STATS)
    std::uint32_t freshness = 0;          ///< statx: AT_STATX_SYNC_AS_STAT, FORCE_SYNC or DONT_SYNC
    PathKind paths = PathKind::relative;  ///< what is handed to the kernel
    bool look_at_all = true;              ///< walk: look at each entry, not only where a condition needs it
    bool from_directory = false;          ///< walk: all of the run directory, not only the trees
    std::optional<Find> find;             ///< walk: counts what meets these conditions
    bool sync = false;                    ///< the whole file system is synced at the end of the phase, timed
    bool by_first = false;                ///< the first task does the work of all
    bool go_on = false;                   ///< an item that is not there is counted as failed, and the next one is done
    std::optional<Window> window;
    Cycle cycle;
};

/// Trees have at most so many directories.
constexpr std::uint64_t most_directories = 1'000'000'000;

/// Number of directories of a tree, and of those that hold items; 0 when there are more than most_directories.
std::uint64_t directories_of(const Tree& tree);
std::uint64_t leaves_of(const Tree& tree);

}  // namespace sonde::plan
