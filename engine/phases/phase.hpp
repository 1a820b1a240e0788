// SPDX-License-Identifier: Apache-2.0
// One phase: treatments, preparation, the timed part, and what is said about it.
#pragma once

#include "phases/context.hpp"
#include "results/duplex.hpp"

#include <cstddef>

namespace sonde::phases {

/// Runs phase `index`. All processes call it, one phase after the other; `half` is what earlier phases have shown and
/// learns from this one. False when the run must end (the outcome says why).
bool run_phase(Context& context, std::size_t index, results::HalfRates& half);

}  // namespace sonde::phases
