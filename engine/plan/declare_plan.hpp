// SPDX-License-Identifier: Apache-2.0
// Declares the members of the plan itself, of target, tasks, observe and limits (fields: plan.hpp).
#pragma once

#include "plan/declare_phase.hpp"

namespace sonde::plan {

void describe(Visitor& visitor, Striping& striping);
void describe(Visitor& visitor, TargetSettings& target);
void describe_plan(Visitor& visitor, Plan& plan, const PhaseContext& context);

}  // namespace sonde::plan
