// SPDX-License-Identifier: Apache-2.0
#include "files/tree_removal.hpp"

#include "files/run_directories.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::files {
namespace {

constexpr const char* foreign_files = " holds files that this run did not make: left alone";

}  // namespace

TreeSweep::TreeSweep(const Manifest& manifest, bool is_dry_run, Removal& removal)
    : is_dry_run_(is_dry_run), removal_(removal) {
    for (const TreeRule& rule : manifest.trees.rules) {
        if (rule.created_by_run) {
            namings_.emplace_back(rule, manifest.tasks);
        }
    }
}

bool TreeSweep::is_top(const std::string& name) const {
    for (const TreeNaming& naming : namings_) {
        if (naming.is_top(name)) {
            return true;
        }
    }
    return false;
}

/// Opens a directory, lets `inside` empty it, and removes it. True when it is gone.
template <class Inside>
bool TreeSweep::remove_directory(const ConfinedDirectory& parent, const std::string& name, Inside inside) {
    const ConfinedDirectory opened = parent.open_subdirectory(name);
    if (!opened) {
        if (opened.error() != ENOENT) {
            report_remaining(unopened_text(opened));
        }
        return opened.error() == ENOENT;
    }
    return inside(opened) && remove_emptied(parent, opened, is_dry_run_, removal_);
}

bool TreeSweep::remove_top(const ConfinedDirectory& parent, const std::string& name) {
    Namings namings;
    for (const TreeNaming& naming : namings_) {
        if (naming.is_top(name)) {
            namings.push_back(&naming);
        }
    }
    return remove_directory(parent, name,
                            [&](const ConfinedDirectory& opened) { return remove_trees_of_top(opened, namings); });
}

bool TreeSweep::remove_trees_of_top(const ConfinedDirectory& open, const Namings& namings) {
    Listing entries = open.list();
    bool empty = entries.error() == 0;
    bool foreign = false;
    while (const char* entry_name = entries.next()) {
        const std::string name = entry_name;
        std::string branch;
        for (const TreeNaming* naming : namings) {
            branch = branch.empty() ? naming->branch_of_root(name) : branch;
        }
        if (branch.empty()) {
            foreign = true;
            continue;
        }
        empty =
            remove_directory(
                open, name, [&](const ConfinedDirectory& inside) { return remove_tree(inside, namings, branch, 0); }) &&
            empty;
    }
    if (foreign) {
        report_remaining(open.path() + foreign_files);
    }
    return empty && !foreign;
}

bool TreeSweep::remove_tree(const ConfinedDirectory& open, const Namings& namings, const std::string& branch,
                            std::uint64_t directory) {
    Listing entries = open.list();
    if (entries.error() != 0) {
        report_remaining(open.path() + " cannot be listed: " + std::strerror(entries.error()));
        return false;
    }
    bool empty = true;
    bool foreign = false;
    while (const char* name = entries.next()) {
        empty = remove_entry(open, name, namings, branch, directory, foreign) && empty;
    }
    if (foreign) {
        report_remaining(open.path() + foreign_files);
    }
    return empty && !foreign;
}

bool TreeSweep::remove_entry(const ConfinedDirectory& open, const std::string& name, const Namings& namings,
                             const std::string& branch, std::uint64_t directory, bool& foreign) {
    for (const TreeNaming* naming : namings) {
        switch (naming->classify_name(directory, name)) {
            case TreeNaming::NameKind::file:
                return remove_regular_file(open, name, is_dry_run_, removal_);
            case TreeNaming::NameKind::directory:
                // Items are empty: what somebody has put into one keeps it.
                return remove_directory(open, name, [this](const ConfinedDirectory& inside) {
                    Listing within = inside.list();
                    const bool empty = within.error() == 0 && within.next() == nullptr;
                    if (!empty) {
                        report_remaining(inside.path() + foreign_files);
                    }
                    return empty;
                });
            case TreeNaming::NameKind::none:
                break;
        }
        if (const auto number = naming->find_subdirectory(branch, directory, name)) {
            return remove_directory(open, name, [&](const ConfinedDirectory& inside) {
                return remove_tree(inside, namings, branch, *number);
            });
        }
    }
    foreign = true;
    return false;
}

Removal remove_trees(const ConfinedDirectory& directory, const Manifest& manifest, bool is_dry_run) {
    Removal removal;
    if (!directory) {
        removal.remaining.push_back(unopened_text(directory));
        return removal;
    }
    TreeSweep sweep(manifest, is_dry_run, removal);
    std::vector<std::string> tops;
    Listing entries = directory.list();
    while (const char* name = entries.next()) {
        if (sweep.is_top(name)) {
            tops.emplace_back(name);
        }
    }
    for (const std::string& name : tops) {
        sweep.remove_top(directory, name);
    }
    return removal;
}

std::uint64_t remove_items(const std::string& directory, const Manifest& manifest, int first, int last) {
    std::uint64_t removed = 0;
    const ConfinedDirectory root = ConfinedDirectory::open_made(directory);
    LastSubdirectory parents(root);
    for (const TreeState& state : manifest.trees.states) {
        const auto& rules = manifest.trees.rules;
        const auto rule = std::find_if(rules.begin(), rules.end(), [&state](const TreeRule& candidate) {
            return candidate.tree.top == state.top && candidate.created_by_run;
        });
        if (rule == rules.end()) {
            continue;
        }
        plan::Meta meta;
        meta.tree = rule->tree;
        meta.names = rule->names;
        meta.objects = state.objects;
        meta.shared_single = rule->shared_single;
        const patterns::TreeShape shape(meta.tree);
        const bool files = state.objects == plan::Objects::files;
        for (int task = first; task < last; ++task) {
            const std::string branch = branch_of_task(meta, task, manifest.tasks);
            const std::string stem = patterns::make_item_stem(meta, task);
            const std::uint64_t items = std::min(shape.items(), state.items[static_cast<std::size_t>(task)]);
            for (std::uint64_t k = 0; k < items; ++k) {
                const patterns::TreeShape::ItemPosition position = shape.locate_item(k);
                std::string relative;
                shape.append_path(relative, branch, position.copy, position.directory);
                const ConfinedDirectory& parent = parents.open_subdirectory(relative);
                if (!parent) {
                    continue;
                }
                const std::string name = stem + std::to_string(position.number);
                const int failed = files ? parent.unlink(name) : parent.remove_directory(name);
                removed += failed == 0 && files ? 1U : 0U;
            }
        }
    }
    return removed;
}

}  // namespace sonde::files
