// SPDX-License-Identifier: Apache-2.0
// Options of one run besides its plan.
#pragma once

#include "records/writer.hpp"

#include <cstddef>
#include <string>

namespace sonde::phases {

/// Shared memory of the node that successive runs of a team reuse; empty before the first run.
struct SharedArena {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
};

struct RunOptions {
    std::string record;   ///< path, "-" = standard output, or empty: no record
    std::string run_id;   ///< name of the run directory, unless the plan sets it
    std::string command;  ///< as typed
    /// Run only this stage, counted from 0 (phases between two `process = "separate"`); -1 = all of them in this
    /// process.
    int stage = -1;
    records::Writer::Listener listener = {};  ///< root: receives each line of the record
    std::string allow_device = {};            ///< the block device that the plan may write to, as the user typed it
    bool destroy = false;                     ///< write to the device although it holds data
    SharedArena* arena = nullptr;             ///< for a team that runs several plans; null = one plan
};

}  // namespace sonde::phases
