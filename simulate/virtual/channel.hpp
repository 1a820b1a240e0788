// SPDX-License-Identifier: Apache-2.0
// The engine's seam to storage, with the machine behind it.
#pragma once

#include "backends/backend.hpp"
#include "virtual/conductor.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sonde::simulate {

struct Directories;

/// Entries of every directory by its path, in the order of their names: from what the machine has at that time.
class Listings {
 public:
    struct Entry {
        std::string name;
        bool directory = false;
    };
    Listings(const Machine& machine, const Directories& directories);
    const std::vector<Entry>& of(const std::string& directory) const;

 private:
    void add(const std::string& path, const std::vector<std::string>& names);

    std::unordered_map<std::string, std::vector<Entry>> entries_;
};

/// Directories of the simulated file system and how many entries each has; files are the machine's.
struct Directories {
    std::unordered_map<std::string, std::uint64_t> entries;
    std::unique_ptr<Listings> listed;  ///< made by the first listing of a phase: such a phase changes no names
};

/// The backend of every phase of a simulated run that reaches storage. Channels belong to the player that runs; this
/// says where the machine is. One simulation at a time in a process.
const backends::Backend& simulated_backend();

/// What channels work on, from now on.
void set_stage(Conductor* conductor, Directories* directories, Time phase_start);
Conductor& stage_conductor();
Time stage_start();

}  // namespace sonde::simulate
