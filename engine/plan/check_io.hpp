// SPDX-License-Identifier: Apache-2.0
// The rules for how calls are made: members of io that need another backend, collective and direct I/O, GPUs.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

#include <string>

namespace sonde::plan {

/// `where` names the phase's data ("phases[2]"). Throws PlanError.
void check_io(const std::string& where, const Data& data, const Tasks& tasks, const Capabilities& capabilities);

}  // namespace sonde::plan
