// SPDX-License-Identifier: Apache-2.0
// Rules of the operation `replay`.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

#include <string>

namespace sonde::plan {

/// Throws PlanError with one sentence. Also for other operations that have members of a replay.
void check_replay(const std::string& where, const Plan& plan, std::size_t index, const Capabilities& capabilities);

}  // namespace sonde::plan
