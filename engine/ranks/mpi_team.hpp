// SPDX-License-Identifier: Apache-2.0
// A team of MPI ranks on one or many nodes. Processes of one node communicate through shared memory. Only node leaders
// use MPI, and only when there are several nodes.
#pragma once

#include "ranks/launcher.hpp"
#include "ranks/team.hpp"

namespace sonde::ranks {

/// Loads the module, starts MPI and joins the other processes. Throws TeamError.
std::unique_ptr<Team> form_mpi_team(const TeamRequest& request, const LaunchEnvironment& launch);

}  // namespace sonde::ranks
