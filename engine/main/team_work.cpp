// SPDX-License-Identifier: Apache-2.0
#include "main/team_work.hpp"

#include "phases/outcome.hpp"

#include <unistd.h>
#include <cstdio>
#include <iostream>

namespace sonde {

int work_together(ranks::Team& team, const std::function<void(int& code)>& work) {
    int code = phases::exit_failed;
    try {
        work(code);
    } catch (const ranks::TeamError&) {
        // When a peer is gone the root says so for all, or, when it was the root, who started it.
        const ranks::NodeControl& control = team.control();
        const bool lost = control.stop.load() == ranks::NodeControl::quit_peer_lost || control.lost_process.load() >= 0;
        if (team.place().root() || !lost) {
            throw;
        }
    }
    std::cout.flush();
    if (!team.all(true)) {
        std::fflush(nullptr);
        _exit(code);  // nobody may wait for a peer that is gone
    }
    team.finish();
    return code;
}

}  // namespace sonde
