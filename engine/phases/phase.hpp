// SPDX-License-Identifier: Apache-2.0
// One phase: treatments, preparation, timed part, results.
#pragma once

#include "phases/phase_steps.hpp"
#include "results/duplex.hpp"

namespace sonde::phases {

/// Runs a phase by its steps. All processes call it. `direction_rates` has the rates of earlier phases and is updated.
/// Returns false when the run must end; the outcome has the reason.
bool run_phase(PhaseSteps& steps, results::DirectionRates& direction_rates);

}  // namespace sonde::phases
