// SPDX-License-Identifier: Apache-2.0
// Rendezvous of the processes of one node that a launcher started. The leader sends the descriptor of a new arena to
// every process that connects to an abstract socket, so that nothing must be removed after a crash.
#pragma once

#include "ranks/arena.hpp"

#include <chrono>
#include <string>

namespace sonde::ranks {

struct NodeSharedState;

struct RendezvousRequest {
    std::string name;     ///< equal for all processes of the rendezvous, unique on this machine
    int local_index = 0;  ///< process 0 creates the arena
    int local_count = 1;
    std::chrono::milliseconds timeout{30'000};  ///< time in which all processes must connect
};

struct RendezvousResult {
    Arena arena;
    NodeSharedState* head = nullptr;  ///< the arena's first piece
};

/// Returns the common arena in every process. Throws TeamError when a process does not connect in time.
RendezvousResult rendezvous(const RendezvousRequest& request);

}  // namespace sonde::ranks
