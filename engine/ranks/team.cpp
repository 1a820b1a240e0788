// SPDX-License-Identifier: Apache-2.0
#include "ranks/team.hpp"

#include "ranks/fork.hpp"
#include "ranks/launcher.hpp"
#include "ranks/mpi_team.hpp"
#include "ranks/node_team.hpp"
#include "ranks/rendezvous.hpp"

#include <cstdlib>

namespace sonde::ranks {
namespace {

std::unique_ptr<Team> single() {
    Arena arena = Arena::create();
    NodeHead* head = NodeHead::make(arena.take(NodeHead::bytes(1)), 1);
    Place place;
    place.node_of.assign(1, 0);
    place.host = host_name();
    return std::make_unique<NodeTeam>(std::move(arena), head, std::move(place), "single");
}

std::unique_ptr<Team> launched_node(const Launched& launched) {
    if (launched.processes == 1) {
        return single();
    }
    if (!launched.one_node()) {
        throw TeamError("the launcher (" + launched.by + ") does not say that its " +
                        (launched.processes > 0 ? std::to_string(launched.processes) + " " : "") +
                        "processes are all on this node: use --mpi");
    }
    // On one node the global numbers serve as local ones: the leader must be the lowest process.
    Joined joined = rendezvous({launched.job, launched.process, launched.processes});
    Place place;
    place.process = place.local = launched.process;
    place.processes = place.locals = launched.processes;
    place.node_of.assign(static_cast<std::size_t>(launched.processes), 0);
    place.host = host_name();
    return std::make_unique<NodeTeam>(std::move(joined.arena), joined.head, std::move(place),
                                      "node (" + launched.by + ")");
}

Launch choose(const FormRequest& request, const Launched& launched) {
    if (request.launch != Launch::automatic) {
        return request.launch;
    }
    if (request.need_mpi) {
        return Launch::mpi;
    }
    // One process in an allocation or under a launcher is as free as one without.
    if (launched.processes == 1) {
        return request.processes > 1 ? Launch::forked : Launch::single;
    }
    return launched.one_node() ? Launch::node : Launch::mpi;
}

}  // namespace

std::string detect_launcher() {
    return launched().by;
}

std::unique_ptr<Team> Team::form(const FormRequest& request) {
    if (request.processes < 1) {
        throw TeamError("the number of processes must be at least 1, not " + std::to_string(request.processes));
    }
    if (!request.mpi_module.empty()) {
        setenv("SONDE_MPI_MODULE", request.mpi_module.c_str(), 1);  // whoever asks later whether there is MPI
    }
    const Launched how = launched();
    switch (choose(request, how)) {
        case Launch::forked:
            return request.processes == 1 ? single() : fork_team(request.processes);
        case Launch::node:
            return launched_node(how);
        case Launch::mpi:
            if (how.processes == 1 && request.processes > 1) {
                throw TeamError("MPI processes cannot be forked: start the engine by `mpiexec -n " +
                                std::to_string(request.processes) + "` (or srun) instead");
            }
            return mpi_team(request, how);
        default:
            return single();
    }
}

}  // namespace sonde::ranks
