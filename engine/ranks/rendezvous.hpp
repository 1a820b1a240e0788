// SPDX-License-Identifier: Apache-2.0
// How processes of one node that nobody forked for us find each other: the leader hands the descriptor of a new arena
// to everyone who connects to a socket that has a name but no file. So nothing needs cleaning up, whoever is killed.
#pragma once

#include "ranks/arena.hpp"

#include <chrono>
#include <string>

namespace sonde::ranks {

struct NodeHead;

struct Meeting {
    std::string name;  ///< same for all who meet and for nobody else on this machine
    int local = 0;     ///< 0 is the one who hands out
    int locals = 1;
    std::chrono::milliseconds patience{30'000};  ///< time for the slowest to start
};

struct Joined {
    Arena arena;
    NodeHead* head = nullptr;  ///< the arena's first piece
};

/// Returns the common arena in every process. Throws TeamError when not all come in time.
Joined rendezvous(const Meeting& meeting);

}  // namespace sonde::ranks
