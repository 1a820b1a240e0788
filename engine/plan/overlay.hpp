// SPDX-License-Identifier: Apache-2.0
// Merges the members of a phase with those of the plan. schema/plan has the same rules (`instead_of`), which the lab
// uses.
#pragma once

#include <nlohmann/json.hpp>

namespace sonde::plan {

/// `base` with each of `members` replaced; other members stay. A member that excludes another
/// (for example segments and volume) removes it. A null base is empty.
nlohmann::json overlay_members(const nlohmann::json& base, const nlohmann::json& members);

}  // namespace sonde::plan
