// SPDX-License-Identifier: Apache-2.0
#include "main/team_work.hpp"

#include "phases/outcome.hpp"
#include "records/text.hpp"

#include <time.h>
#include <unistd.h>
#include <cstdio>
#include <iostream>

namespace sonde {

namespace {

/// Launchers end all processes as soon as one ends with an error; the root has to clean up and to complete the record
/// first. A signal says that it is over.
void let_the_root_speak() {
    const timespec time{3, 0};
    nanosleep(&time, nullptr);
}

}  // namespace

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
    // A root that is out of reach cannot speak for the others any more: somebody may look at their messages.
    if (team.place().leader() && !team.place().root() && team.control().lost_in_silence.load() != 0 &&
        team.control().lost_process.load() == 0) {
        records::complain(team.place().host +
                          " ends: nothing was heard of the first node, which writes the record, for longer than "
                          "SONDE_NODE_PATIENCE");
    }
    std::cout.flush();
    if (!team.all(true)) {
        std::fflush(nullptr);
        if (team.place().nodes > 1 && !team.place().root()) {
            let_the_root_speak();
        }
        _exit(code);  // nobody may wait for a peer that is gone
    }
    team.finish();
    return code;
}

}  // namespace sonde
