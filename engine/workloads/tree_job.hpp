// SPDX-License-Identifier: Apache-2.0
// Which part of a tree one stream works on.
#pragma once

#include "backends/names.hpp"
#include "patterns/tree.hpp"
#include "workloads/search.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sonde::workloads {

struct WalkBoard;

/// Items of one task.
struct TreePart {
    int owner = 0;                 ///< whose items
    std::string branch;            ///< first part of the names of the directories they lie in
    std::string item_stem;         ///< of their own names
    std::uint64_t item_count = 0;  ///< so many of them, in the order of creation
    std::uint64_t generation = 0;  ///< create: of what is written; read: of what is expected, 0 = not known
    std::uint64_t rotation = 0;    ///< whole renamings since then: how far content has moved from name to name
};

struct TreeJob {
    explicit TreeJob(const plan::Tree& tree) : shape(tree) {}

    patterns::TreeShape shape;
    std::string root;  ///< the run directory
    /// The same, open while the phase lasts; `anywhere`: names are whole paths.
    backends::Directory directory = backends::current_directory;
    std::vector<TreePart> parts;        ///< items; one after the other
    std::vector<std::string> branches;  ///< branches whose directories are divided among streams: the k-th
                                        ///< directory of this stream is first_directory + k * directory_step
    std::uint64_t first_directory = 0, directory_step = 1;
    std::vector<std::string> item_stems;  ///< cycle: of the items of each task, and `branches` by task too
    bool may_exist = false;               ///< directories that are there already are no error
    // walk
    WalkBoard* walk = nullptr;  ///< shared by the streams of this node
    int stream_on_node = 0, node = 0, nodes = 1;
    std::uint64_t entry_limit =
        ~0ULL;  ///< entries of this stream at most; the walk ends with the first stream that has them
    std::optional<EntrySearch> search;
    std::string run_file;  ///< of the run, in its directory: not part of what is walked

    /// The part of `path`, the root or a path below it, that is a name relative to `directory`.
    const char* to_relative_path(const std::string& path) const {
        if (directory == backends::current_directory) {
            return path.c_str();
        }
        return path.size() > root.size() ? path.c_str() + root.size() + 1 : ".";
    }
    /// Directories over all branches and copies.
    std::uint64_t run_directory_count() const { return branches.size() * shape.copies() * shape.directories(); }
    std::uint64_t stream_directory_count() const {
        const std::uint64_t all = run_directory_count();
        return all > first_directory ? (all - first_directory - 1) / directory_step + 1 : 0;
    }
    /// Path of the n-th of this stream's directories; `backwards` counts from the last one, children before parents.
    void set_directory_path(std::uint64_t n, bool backwards, std::string& path) const {
        std::uint64_t number = first_directory + n * directory_step;
        if (backwards) {
            number = run_directory_count() - 1 - number;
        }
        const std::uint64_t of_branch = shape.copies() * shape.directories();
        const std::uint64_t in_branch = number % of_branch;
        path = root + "/";
        shape.append_path(path, branches[number / of_branch], in_branch / shape.directories(),
                          in_branch % shape.directories());
    }
    std::uint64_t item_count() const {
        std::uint64_t sum = 0;
        for (const TreePart& part : parts) {
            sum += part.item_count;
        }
        return sum;
    }
    /// The item under whose name the content of this one was written.
    static std::uint64_t original_item(const TreePart& part, std::uint64_t item) {
        const std::uint64_t ring = part.item_count > 1 ? part.item_count - 1 : 1;
        return item < ring ? (item + part.rotation) % ring : item;
    }
    /// Number that distinguishes the items of a window in IOR's content: unique within a task.
    std::uint64_t content_number(std::uint64_t copy, std::uint64_t number) const {
        return number * shape.copies() + copy;
    }
    /// Identity of the content of a task's item.
    std::uint64_t file_number(const TreePart& part, std::uint64_t item) const {
        return static_cast<std::uint64_t>(part.owner) * shape.items() + original_item(part, item);
    }
};

}  // namespace sonde::workloads
