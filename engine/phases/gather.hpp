// SPDX-License-Identifier: Apache-2.0
// Joins lists of all processes at the root.
#pragma once

#include "ranks/team.hpp"

#include <nlohmann/json.hpp>

namespace sonde::phases {

/// All processes call it with an array; only arrays of node leaders count. Returns the elements of all leaders in the
/// order of nodes at the root, and an empty array elsewhere.
nlohmann::json gather_list(ranks::Team& team, const nlohmann::json& own_list);

}  // namespace sonde::phases
