// SPDX-License-Identifier: Apache-2.0
// Forms the team of a run: determines how this process was started and joins the other processes.
#pragma once

#include "ranks/launcher.hpp"
#include "ranks/team.hpp"
#include "ranks/team_error.hpp"

#include <memory>

namespace sonde::ranks {

/// Joins the other processes of the run. For LaunchMode::forked it returns in every worker, while the parent never
/// returns: the parent waits and exits with the worst status of its workers (fork.hpp). Throws TeamError.
std::unique_ptr<Team> form_team(const TeamRequest& request);

}  // namespace sonde::ranks
