// SPDX-License-Identifier: Apache-2.0
// Collective operations of all processes of a run: lists joined at the root, agreement that a phase can begin.
#pragma once

#include "phases/context.hpp"
#include "ranks/team.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {

/// All processes call it with an array; only arrays of node leaders count. Returns the elements of all leaders in the
/// order of nodes at the root, and an empty array elsewhere.
nlohmann::json gather_list(ranks::Team& team, const nlohmann::json& own_list);

/// Returns true when no process has a complaint (a sentence; empty = none). Otherwise the first complaint becomes the
/// outcome at the root, with exit code `code`, which must be equal in all processes. `phase` names the phase that does
/// not begin.
bool no_process_has_problem(RunContext& context, const std::string& phase, const std::string& complaint, int code);

}  // namespace sonde::phases
