// SPDX-License-Identifier: Apache-2.0
// Runs work in all processes of a team and ends the team.
#pragma once

#include "ranks/team.hpp"

#include <functional>

namespace sonde {

/// Calls `work` in all processes, which sets the exit code, and ends the team. Returns that code; when a peer is gone,
/// the code at that time. Does not return when waiting for the lost peer could block: then the process exits.
int run_in_team(ranks::Team& team, const std::function<void(int& code)>& work);

}  // namespace sonde
