// SPDX-License-Identifier: Apache-2.0
// The text of a plan that a dialect makes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::dialects {

/// The plan as JSON text. Throws plan::PlanError when a name in it is not UTF-8, because a plan could only name another
/// file then.
std::string to_plan_text(const nlohmann::ordered_json& plan);

}  // namespace sonde::dialects
