// SPDX-License-Identifier: Apache-2.0
// Members of a plan that a model of a machine does not use.
#pragma once

#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace sonde::simulate {

/// A sentence without a period for each reason: the members that differ from their default and that a simulated run
/// neither uses nor refuses.
std::vector<std::string> find_unused_members(const plan::Plan& plan);

}  // namespace sonde::simulate
