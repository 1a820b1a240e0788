// SPDX-License-Identifier: Apache-2.0
#include "main/team_work.hpp"

#include "phases/outcome.hpp"
#include "ranks/team_error.hpp"
#include "records/text.hpp"

#include <time.h>
#include <unistd.h>
#include <cstdio>
#include <iostream>

namespace sonde {

namespace {

/// Launchers kill all processes as soon as one ends with an error, so other processes wait while the root removes files
/// and completes the record. A signal ends the wait.
void wait_before_abort() {
    const timespec time{3, 0};
    nanosleep(&time, nullptr);
}

}  // namespace

int run_in_team(ranks::Team& team, const std::function<void(int& code)>& work) {
    int code = phases::exit_failed;
    try {
        work(code);
    } catch (const ranks::TeamError&) {
        // The root reports a lost peer for all; the loss of the root is reported by its parent or launcher.
        const ranks::NodeControl& control = team.control();
        const bool lost = control.stop.load() == ranks::NodeControl::quit_peer_lost || control.lost_process.load() >= 0;
        if (team.location().is_root() || !lost) {
            throw;
        }
    }
    // When the root is unreachable, the other processes print their own message.
    if (team.location().is_leader() && !team.location().is_root() && team.control().is_lost_by_timeout.load() != 0 &&
        team.control().lost_process.load() == 0) {
        records::print_error(team.location().host +
                             " ends: nothing was heard of the first node, which writes the record, for longer than "
                             "SONDE_NODE_PATIENCE");
    }
    std::cout.flush();
    if (!team.all_true(true)) {
        std::fflush(nullptr);
        if (team.location().nodes > 1 && !team.location().is_root()) {
            wait_before_abort();
        }
        _exit(code);  // destructors could wait for the lost peer
    }
    team.finish();
    return code;
}

}  // namespace sonde
