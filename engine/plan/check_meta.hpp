// SPDX-License-Identifier: Apache-2.0
// The rules between members of a phase that works on trees. Errors are one sentence with the remedy.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <string>

namespace sonde::plan {

/// `where` names the phase ("phases[2]"). Throws PlanError.
void check_meta(const std::string& where, const Plan& plan, std::size_t index);

}  // namespace sonde::plan
