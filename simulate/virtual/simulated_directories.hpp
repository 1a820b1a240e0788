// SPDX-License-Identifier: Apache-2.0
// Directories of the simulated file system. The machine has the files.
#pragma once

#include "model/machine.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sonde::simulate {

struct SimulatedDirectories;

/// The entries of every directory by its path, sorted by name: a copy of what the machine has at one time.
class DirectoryListings {
 public:
    struct ListedName {
        std::string name;
        bool is_directory = false;
    };
    DirectoryListings(const Machine& machine, const SimulatedDirectories& directories);
    /// Empty for an unknown directory.
    const std::vector<ListedName>& entries(const std::string& directory) const;

 private:
    void add_to_parent(const std::string& path, const std::vector<std::string>& paths);

    std::unordered_map<std::string, std::vector<ListedName>> entries_;
};

struct SimulatedDirectories {
    std::unordered_map<std::string, std::uint64_t> entry_counts;  ///< by path
    /// Created by the first listing of a phase, since a phase that lists directories changes no names.
    std::unique_ptr<DirectoryListings> listings;
};

}  // namespace sonde::simulate
