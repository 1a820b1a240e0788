// SPDX-License-Identifier: Apache-2.0
// What a caller asks of one run besides its plan.
#pragma once

#include "records/writer.hpp"

#include <cstddef>
#include <string>

namespace sonde::phases {

/// Memory of the node that one run after the other of a team uses; empty before the first.
struct Ground {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
};

struct RunOptions {
    std::string record;   ///< path, "-" = standard output, or empty: no record
    std::string run_id;   ///< names the run directory, unless the plan does
    std::string command;  ///< as typed
    /// Run only this stage, counted from 0 (phases between two `process = "separate"`); -1 = all of them in this
    /// process.
    int stage = -1;
    records::Writer::Listener listener = {};  ///< root: hears each line of the record
    Ground* ground = nullptr;                 ///< of a team that runs several plans; null: it runs one
};

}  // namespace sonde::phases
