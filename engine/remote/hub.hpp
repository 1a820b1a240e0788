// SPDX-License-Identifier: Apache-2.0
// Starts the processes of a run on several hosts over ssh, without MPI and without a service that listens there:
//
//   hub (sonde-engine ssh) ─ ssh ─ node command (sonde-engine ssh-node), one a host ─ socket ─ processes of that host
//
// The hub forwards messages between hosts, standard output of the processes, signals, and the end of each process.
#pragma once

#include <string>
#include <vector>

namespace sonde::remote {

struct SshRequest {
    std::vector<std::string> hosts;    ///< each once
    int processes = 1;                 ///< at least one a host; divided into equal parts, the first ones larger by one
    std::vector<std::string> shell;    ///< the program that starts a command on a host, with its options
    std::vector<std::string> command;  ///< arguments of sonde-engine
};

/// Runs the command on all hosts. Returns the exit code of the run: the worst of all processes. Messages go to standard
/// error.
int run_over_ssh(const SshRequest& request);

}  // namespace sonde::remote
