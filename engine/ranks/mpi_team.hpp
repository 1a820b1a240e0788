// SPDX-License-Identifier: Apache-2.0
// Processes on one or many nodes that an MPI library joins. Inside a node everything goes by shared memory; only the
// leaders of the nodes speak MPI, and only when there is more than one node.
#pragma once

#include "ranks/launcher.hpp"
#include "ranks/team.hpp"

namespace sonde::ranks {

/// Loads the module, starts MPI and meets the others. Throws TeamError.
std::unique_ptr<Team> mpi_team(const FormRequest& request, const Launched& launched);

}  // namespace sonde::ranks
