// SPDX-License-Identifier: Apache-2.0
// The resolved plan: all members without defaults.
#pragma once

#include "plan/plan.hpp"

#include <nlohmann/json.hpp>

namespace sonde::plan {

/// The plan as JSON (schema/plan) with complete phases: sizes in bytes, durations as "<n>ns", rates in bytes per
/// second, defaults and the plan's `data` and `meta` included. Parsing it gives the same plan. Members without default
/// that were not given are absent, and so are `source` and `notes`.
nlohmann::ordered_json resolve_plan(Plan plan);

}  // namespace sonde::plan
