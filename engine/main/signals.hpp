// SPDX-License-Identifier: Apache-2.0
// Signals end a phase in good order; they never kill a run that still has something to write.
#pragma once

#include "ranks/team.hpp"

namespace sonde {

/// SIGINT, SIGTERM and SIGHUP ask the tasks to stop; SIGALRM is the run's time limit; SIGPIPE and SIGXFSZ are ignored
/// (the call that caused them returns an error). A second SIGINT or SIGTERM ends the process at once.
void install_signals(ranks::NodeControl& control);

}  // namespace sonde
