// SPDX-License-Identifier: Apache-2.0
// One phase: treatments, preparation, the timed part, and what is said about it.
#pragma once

#include "phases/context.hpp"

#include <cstddef>

namespace sonde::phases {

/// Half-duplex rates measured so far in this run (bytes/s), for the efficiency of duplex phases.
struct HalfRates {
    double write = 0, read = 0;
};

/// Runs phase `index` on all processes. False when the run must end (the outcome says why).
bool run_phase(Context& context, std::size_t index, HalfRates& half);

}  // namespace sonde::phases
