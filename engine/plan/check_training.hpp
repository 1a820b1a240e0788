// SPDX-License-Identifier: Apache-2.0
// Rules for phases with op = "train".
#pragma once

#include "plan/plan.hpp"

#include <string>

namespace sonde::plan {

/// Throws PlanError. `where` names the phase in messages.
void check_training(const std::string& where, const Phase& phase);

}  // namespace sonde::plan
