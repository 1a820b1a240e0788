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
    std::string stem;              ///< of their own names
    std::uint64_t items = 0;       ///< so many of them, in the order of creation
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
    std::vector<std::string> branches;  ///< directories of these, dealt: the k-th is number first + k * every
    std::uint64_t first = 0, every = 1;
    std::vector<std::string> stems;  ///< cycle: of the items of each task, and `branches` by task too
    bool may_exist = false;          ///< directories that are there already are no error
    // walk
    WalkBoard* walk = nullptr;  ///< shared by the streams of this node
    int stream_on_node = 0, node = 0, nodes = 1;
    std::uint64_t most = ~0ULL;  ///< entries of this stream at most; the walk ends with the first stream that has them
    std::optional<EntrySearch> search;
    std::string own_file;  ///< of the run, in its directory: not part of what is walked

    /// The part of `path`, the root or a path below it, that is a name relative to `directory`.
    const char* relative(const std::string& path) const {
        if (directory == backends::current_directory) {
            return path.c_str();
        }
        return path.size() > root.size() ? path.c_str() + root.size() + 1 : ".";
    }
    /// Directories over all branches and copies.
    std::uint64_t all_directories() const { return branches.size() * shape.copies() * shape.directories(); }
    std::uint64_t own_directories() const {
        const std::uint64_t all = all_directories();
        return all > first ? (all - first - 1) / every + 1 : 0;
    }
    /// Path of the n-th of this stream's directories; `backwards` counts from the last one, children before parents.
    void directory_path(std::uint64_t n, bool backwards, std::string& path) const {
        std::uint64_t number = first + n * every;
        if (backwards) {
            number = all_directories() - 1 - number;
        }
        const std::uint64_t of_branch = shape.copies() * shape.directories();
        const std::uint64_t in_branch = number % of_branch;
        path = root + "/";
        shape.append_path(path, branches[number / of_branch], in_branch / shape.directories(),
                          in_branch % shape.directories());
    }
    std::uint64_t items() const {
        std::uint64_t sum = 0;
        for (const TreePart& part : parts) {
            sum += part.items;
        }
        return sum;
    }
    /// The item under whose name the content of this one was written.
    static std::uint64_t written_as(const TreePart& part, std::uint64_t item) {
        const std::uint64_t ring = part.items > 1 ? part.items - 1 : 1;
        return item < ring ? (item + part.rotation) % ring : item;
    }
    /// What tells items of a window apart, in IOR's content: no two of a task have the same.
    std::uint64_t content_number(std::uint64_t copy, std::uint64_t number) const {
        return number * shape.copies() + copy;
    }
    /// Identity of the content of a task's item.
    std::uint64_t file_number(const TreePart& part, std::uint64_t item) const {
        return static_cast<std::uint64_t>(part.owner) * shape.items() + written_as(part, item);
    }
};

}  // namespace sonde::workloads
