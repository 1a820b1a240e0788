// SPDX-License-Identifier: Apache-2.0
// Signal handling: signals end a phase in good order, so that the record is completed.
#pragma once

#include "ranks/team.hpp"

#include <csignal>

namespace sonde {

/// The signals that ask a run to end: SIGINT, SIGTERM and SIGHUP; with `children` also SIGCHLD.
sigset_t make_stop_signal_set(bool children);

/// SIGINT, SIGTERM and SIGHUP stop the tasks; SIGALRM is the run's time limit; SIGPIPE and SIGXFSZ are ignored (the
/// call that caused them returns an error). A second request ends the process at once, and the process that `speaks`
/// says so; one within a third of a second is taken for an echo of the first, because shells, launchers and `timeout`
/// send theirs to a process and to its group. Unblocks what make_stop_signal_set() names.
void install_signals(ranks::NodeControl& control, bool prints_message);

}  // namespace sonde
