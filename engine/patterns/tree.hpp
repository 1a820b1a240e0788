// SPDX-License-Identifier: Apache-2.0
// The numbering of a tree: which directories it has, which items lie where, and what all of them are called. Everything
// is computed, nothing stored, so a million items cost nothing.
//
// Directories are numbered level by level: 0 is the root, the children of d are d*b+1 … d*b+b (b = branching). Item k
// of a task, in the order of creation, lies in copy k / (D*I), in the (k / I mod D)-th of the D directories that hold
// items, and its number is directory * I + (k mod I), where I is items_per_dir.
#pragma once

#include "plan/meta.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sonde::patterns {

class TreeShape {
 public:
    explicit TreeShape(const plan::Tree& tree);

    std::uint64_t directories() const { return directories_; }  ///< of one copy
    std::uint64_t copies() const { return copies_; }
    std::uint64_t items_per_dir() const { return per_dir_; }
    /// Of one task, all copies.
    std::uint64_t items() const { return copies_ * item_directories_ * per_dir_; }
    /// Directories that hold items, of one copy, and the first of them; they are numbered without gaps.
    std::uint64_t item_directories() const { return item_directories_; }
    std::uint64_t first_item_directory() const { return first_item_directory_; }
    std::uint64_t parent(std::uint64_t directory) const { return (directory - 1) / branching_; }

    struct ItemPosition {
        std::uint64_t copy = 0, directory = 0, number = 0;
    };
    ItemPosition locate_item(std::uint64_t item) const {
        const std::uint64_t slot = item / per_dir_;
        const std::uint64_t directory = first_item_directory_ + slot % item_directories_;
        return {slot / item_directories_, directory, directory * per_dir_ + item % per_dir_};
    }

    /// Appends the path of a directory below the run directory: "items-0/branch.0/branch.1/branch.4".
    void append_path(std::string& path, const std::string& branch, std::uint64_t copy, std::uint64_t directory) const;
    /// Its own name: "branch.4".
    static std::string directory_name(const std::string& branch, std::uint64_t directory);
    std::string top_name(std::uint64_t copy) const { return top_ + "-" + std::to_string(copy); }
    /// The copy whose top has this name.
    std::optional<std::uint64_t> copy_of(std::string_view name) const;
    /// True when `child` lies directly in `parent`.
    bool is_child(std::uint64_t parent, std::uint64_t child) const {
        return child > 0 && child < directories_ && this->parent(child) == parent;
    }
    bool is_item_directory(std::uint64_t directory) const { return directory >= first_item_directory_; }

 private:
    std::string top_;
    std::uint64_t copies_, branching_, directories_, item_directories_, first_item_directory_, per_dir_;
};

/// "file.<task>." or "file.shared.": what stands before the number in the names of a task's items.
std::string make_item_stem(const plan::Meta& meta, int task);

/// `text` as a decimal number without sign or superfluous zeros.
std::optional<std::uint64_t> parse_decimal(std::string_view text);

}  // namespace sonde::patterns
