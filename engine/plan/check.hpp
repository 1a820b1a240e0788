// SPDX-License-Identifier: Apache-2.0
// The rules between members of a plan. Each failure is one sentence with the remedy.
#pragma once

#include "plan/offer.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::plan {

/// Throws PlanError. Called by parse_plan.
void check_plan(const Plan& plan, const Offer& offer);

/// True when `tasks` tasks with this many segments stay inside the largest file (4 EiB). Asked by check_plan where the
/// plan says how many segments; elsewhere when that is known.
bool fits_in_file(const Data& data, std::uint64_t segments, std::uint64_t tasks);

}  // namespace sonde::plan
