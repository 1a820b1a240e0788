// SPDX-License-Identifier: Apache-2.0
// Stages of a plan: groups of phases that run in one process each.
#pragma once

#include "plan/plan.hpp"

#include <vector>

namespace sonde::phases {

/// The stage of each phase, counted from 0; a phase with `process = "separate"` begins the next. Never empty for a plan
/// that has been read.
std::vector<int> number_stages(const plan::Plan& plan);

/// Whether a run of this stage (-1 = of all) is the last of the plan.
bool is_last_stage(const plan::Plan& plan, int stage);

}  // namespace sonde::phases
