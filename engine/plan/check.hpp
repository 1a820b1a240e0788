// SPDX-License-Identifier: Apache-2.0
// The rules between members of a plan. Errors are one sentence with the remedy.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

namespace sonde::plan {

/// Throws PlanError. Called by parse_plan.
void check_plan(const Plan& plan, const Capabilities& capabilities);

}  // namespace sonde::plan
