// SPDX-License-Identifier: Apache-2.0
#include "virtual/simulated_directories.hpp"

#include <algorithm>

namespace sonde::simulate {

DirectoryListings::DirectoryListings(const Machine& machine, const SimulatedDirectories& directories) {
    std::vector<std::string> paths = machine.file_names();
    for (const auto& [path, count] : directories.entry_counts) {
        paths.push_back(path);
    }
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    for (const std::string& path : paths) {
        add_to_parent(path, paths);
    }
    for (auto& [directory, entries] : entries_) {
        std::sort(entries.begin(), entries.end(),
                  [](const ListedName& a, const ListedName& b) { return a.name < b.name; });
        for (ListedName& entry : entries) {
            const std::string path = directory + "/" + entry.name;
            entry.is_directory = entries_.contains(path) || directories.entry_counts.contains(path);
        }
    }
}

/// Adds a path to the entries of its parent, and the parent to its own parent if `paths` lacks it.
void DirectoryListings::add_to_parent(const std::string& path, const std::vector<std::string>& paths) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) {
        return;
    }
    const std::string parent = path.substr(0, slash);
    const auto [entry, is_new] = entries_.try_emplace(parent);
    entry->second.push_back({path.substr(slash + 1), false});
    if (is_new && !std::binary_search(paths.begin(), paths.end(), parent)) {
        add_to_parent(parent, paths);
    }
}

const std::vector<DirectoryListings::ListedName>& DirectoryListings::entries(const std::string& directory) const {
    static const std::vector<ListedName> no_entries;
    const auto entry = entries_.find(directory);
    return entry == entries_.end() ? no_entries : entry->second;
}

}  // namespace sonde::simulate
