// SPDX-License-Identifier: Apache-2.0
#include "ranks/team.hpp"

#include "ranks/fork.hpp"
#include "ranks/launcher.hpp"
#include "ranks/node_team.hpp"

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

}  // namespace

std::string detect_launcher() {
    return launched().by;
}

std::unique_ptr<Team> Team::form(const FormRequest& request) {
    if (request.processes < 1) {
        throw TeamError("the number of processes must be at least 1, not " + std::to_string(request.processes));
    }
    return request.processes == 1 ? single() : fork_team(request.processes);
}

}  // namespace sonde::ranks
