// SPDX-License-Identifier: Apache-2.0
// Removes trees by their rule: lists directories and removes the entries that the rule names, by descriptors and never
// through a link.
#pragma once

#include "files/manifest.hpp"
#include "files/removal_steps.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::files {

class TreeSweep {
 public:
    TreeSweep(const Manifest& manifest, bool is_dry_run, Removal& removal);

    /// True when a tree of the run lies in a directory of this name.
    bool is_top(const std::string& name) const;
    /// Removes the directory `name` of `parent`, with the trees in it. True when it is gone.
    bool remove_top(const ConfinedDirectory& parent, const std::string& name);

 private:
    using Namings = std::vector<const TreeNaming*>;

    bool remove_trees_of_top(const ConfinedDirectory& open, const Namings& namings);
    bool remove_tree(const ConfinedDirectory& open, const Namings& namings, const std::string& branch,
                     std::uint64_t directory);
    bool remove_entry(const ConfinedDirectory& open, const std::string& name, const Namings& namings,
                      const std::string& branch, std::uint64_t directory, bool& foreign);
    template <class Inside>
    bool remove_directory(const ConfinedDirectory& parent, const std::string& name, Inside inside);
    void report_remaining(const std::string& sentence) { removal_.remaining.push_back(sentence); }

    std::vector<TreeNaming> namings_;
    bool is_dry_run_;
    Removal& removal_;
};

/// Removes the items of tasks first … last-1 that phases have left in trees, as far as they are known.
std::uint64_t remove_items(const std::string& directory, const Manifest& manifest, int first, int last);
/// In a directory that was there before the run: removes the trees that the run made, and nothing else.
Removal remove_trees(const ConfinedDirectory& directory, const Manifest& manifest, bool is_dry_run);

}  // namespace sonde::files
