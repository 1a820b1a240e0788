// SPDX-License-Identifier: Apache-2.0
// The engine's seam to storage, with the machine behind it.
#pragma once

#include "backends/backend.hpp"
#include "virtual/conductor.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>

namespace sonde::simulate {

/// Directories of the simulated file system and how many entries each has; files are the machine's.
struct Directories {
    std::unordered_map<std::string, std::uint64_t> entries;
};

/// The backend that every phase of a simulated run has. Channels belong to the player that runs; this says where the
/// machine is. One simulation at a time in a process.
const backends::Backend& simulated_backend();

/// What channels work on, from now on.
void set_stage(Conductor* conductor, Directories* directories, Time phase_start);

}  // namespace sonde::simulate
