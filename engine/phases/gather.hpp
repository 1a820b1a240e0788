// SPDX-License-Identifier: Apache-2.0
// Lists that processes have made become one list at the root.
#pragma once

#include "ranks/team.hpp"

#include <nlohmann/json.hpp>

namespace sonde::phases {

/// All processes call it, each with an array (empty where it has nothing to say; only those of leaders travel between
/// nodes). At the root: the members of all, node by node; elsewhere empty.
nlohmann::json gather(ranks::Team& team, const nlohmann::json& mine);

}  // namespace sonde::phases
