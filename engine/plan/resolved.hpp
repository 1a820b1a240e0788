// SPDX-License-Identifier: Apache-2.0
// A plan written out again: everything that the engine understood, with nothing left to a default.
#pragma once

#include "plan/plan.hpp"

#include <nlohmann/json.hpp>

namespace sonde::plan {

/// The plan as JSON (schema/plan) in which each phase is complete in itself: sizes in bytes, durations as "<n>ns",
/// rates in bytes per second, defaults and what the plan's `data` and `meta` say written out. Reading it gives the same
/// plan. Absent: what has no default and was not given, and `source` and `notes`, which the engine does not read.
nlohmann::ordered_json resolved(const Plan& plan);

}  // namespace sonde::plan
