// SPDX-License-Identifier: Apache-2.0
#include "ranks/team_factory.hpp"

#include "ranks/fork.hpp"
#include "ranks/launcher.hpp"
#include "ranks/mpi_team.hpp"
#include "ranks/node_team.hpp"
#include "ranks/rendezvous.hpp"

#include <cstdlib>

namespace sonde::ranks {
namespace {

std::unique_ptr<Team> form_single_team() {
    Arena arena = Arena::create();
    NodeSharedState* head = NodeSharedState::construct_in(arena.allocate(NodeSharedState::required_bytes(1)), 1);
    ProcessLocation location;
    location.node_of.assign(1, 0);
    location.host = host_name();
    return std::make_unique<NodeTeam>(std::move(arena), head, std::move(location), "single");
}

std::unique_ptr<Team> form_launched_team(const LaunchEnvironment& launch) {
    if (launch.processes == 1) {
        return form_single_team();
    }
    if (!launch.is_one_node()) {
        throw TeamError("the launcher (" + launch.launcher + ") does not say that its " +
                        (launch.processes > 0 ? std::to_string(launch.processes) + " " : "") +
                        "processes are all on this node: use --mpi");
    }
    // On one node the global numbers are used as local ones, because the leader must be the lowest process.
    RendezvousResult joined = rendezvous({launch.job, launch.process, launch.processes});
    ProcessLocation location;
    location.process = location.local_index = launch.process;
    location.processes = location.local_count = launch.processes;
    location.node_of.assign(static_cast<std::size_t>(launch.processes), 0);
    location.host = host_name();
    return std::make_unique<NodeTeam>(std::move(joined.arena), joined.head, std::move(location),
                                      "node (" + launch.launcher + ")");
}

LaunchMode choose_mode(const TeamRequest& request, const LaunchEnvironment& launch) {
    if (request.launch != LaunchMode::automatic) {
        return request.launch;
    }
    if (request.need_mpi) {
        return LaunchMode::mpi;
    }
    // A single process under a launcher may fork workers like a process without a launcher.
    if (launch.processes == 1) {
        return request.processes > 1 ? LaunchMode::forked : LaunchMode::single;
    }
    return launch.is_one_node() ? LaunchMode::node : LaunchMode::mpi;
}

}  // namespace

std::unique_ptr<Team> form_team(const TeamRequest& request) {
    if (request.processes < 1) {
        throw TeamError("the number of processes must be at least 1, not " + std::to_string(request.processes));
    }
    if (!request.mpi_module.empty()) {
        setenv("SONDE_MPI_MODULE", request.mpi_module.c_str(), 1);  // for later checks whether MPI is available
    }
    const LaunchEnvironment launch = detect_launch();
    switch (choose_mode(request, launch)) {
        case LaunchMode::forked:
            return request.processes == 1 ? form_single_team() : fork_team(request.processes);
        case LaunchMode::node:
            return form_launched_team(launch);
        case LaunchMode::mpi:
            if (launch.processes == 1 && request.processes > 1) {
                throw TeamError("MPI processes cannot be forked: start the engine by `mpiexec -n " +
                                std::to_string(request.processes) + "` (or srun) instead");
            }
            return form_mpi_team(request, launch);
        default:
            return form_single_team();
    }
}

}  // namespace sonde::ranks
