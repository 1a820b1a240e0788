// SPDX-License-Identifier: Apache-2.0
// Rejects plan members that do not apply to a block device, which has no files.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

namespace sonde::plan {

/// Lets all tasks of a plan with target.device use that device in place of a file.
void set_device(Plan& plan);

/// Rules for targets that are block devices. Throws PlanError.
void check_device(const Plan& plan, const Capabilities& capabilities);

}  // namespace sonde::plan
