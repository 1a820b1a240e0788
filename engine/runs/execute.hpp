// SPDX-License-Identifier: Apache-2.0
// One run from the first line of the record to the last.
#pragma once

#include "runs/venue.hpp"

namespace sonde::runs {

/// Runs the plan of the venue. Every process of the team calls it; returns the exit code (the same in all).
int execute(Venue& venue);

}  // namespace sonde::runs
