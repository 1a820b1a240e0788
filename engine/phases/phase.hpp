// SPDX-License-Identifier: Apache-2.0
// One phase: treatments, preparation, timed part, results.
#pragma once

#include "phases/context.hpp"
#include "results/duplex.hpp"

#include <cstddef>

namespace sonde::phases {

/// Runs phase `index`. All processes call it. `direction_rates` has the rates of earlier phases and is updated. Returns
/// false when the run must end; the outcome has the reason.
bool run_phase(RunContext& context, std::size_t index, results::DirectionRates& direction_rates);

}  // namespace sonde::phases
