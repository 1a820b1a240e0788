// SPDX-License-Identifier: Apache-2.0
// Rejects plan members that do not apply to an object store, which stores complete objects by key.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

#include <cstddef>

namespace sonde::plan {

/// Whether the target is a bucket ("s3://…").
bool has_object_target(const TargetSettings& target);

/// Rules for targets that are buckets, and for backends that need one. Throws PlanError.
void check_object_target(const Plan& plan, const Capabilities& capabilities);
/// The same for one phase.
void check_objects(const Plan& plan, std::size_t index, const Capabilities& capabilities);

}  // namespace sonde::plan
