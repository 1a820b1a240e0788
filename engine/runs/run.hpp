// SPDX-License-Identifier: Apache-2.0
// One run from the first line of the record to the last.
#pragma once

#include "phases/context.hpp"
#include "plan/plan.hpp"
#include "ranks/team.hpp"

namespace sonde::runs {

/// Runs the plan with an already formed team. Called by every process; returns the exit code (the same in all).
int execute_run(const plan::Plan& plan, const phases::RunOptions& options, ranks::Team& team);

}  // namespace sonde::runs
