// SPDX-License-Identifier: Apache-2.0
// Parses a plan.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"
#include "plan/plan_error.hpp"

#include <string_view>

namespace sonde::plan {

/// Reads and checks a plan (schema/plan/plan.schema.json). Checks everything that does not need the machine: members,
/// types, ranges, rules between members (check.hpp), and names of backends and treatments. Throws PlanError.
Plan parse_plan(std::string_view json_text, const Capabilities& capabilities);

}  // namespace sonde::plan
