// SPDX-License-Identifier: Apache-2.0
// Worker processes forked by the engine itself, and the parent that waits for them.
#pragma once

#include "ranks/team.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace sonde::ranks {

/// What a node has left for processes.
struct ProcessRoom {
    std::uint64_t numbers = 0;  ///< process numbers that are free (kernel.pid_max less what runs)
    std::uint64_t memory = 0;   ///< bytes available
};
ProcessRoom process_room();

/// Empty, or one sentence: so many processes cannot be on this node, and how many can.
std::string why_too_many(int processes, const ProcessRoom& room);

/// Forks `processes` workers and returns the team in each of them. The parent never returns: it passes SIGINT, SIGTERM
/// and SIGHUP on to the workers, waits until all have ended, and exits with worst_status() of theirs. Must be called
/// before the process has threads. Throws TeamError when a process cannot be made.
std::unique_ptr<Team> fork_team(int processes);

/// The exit code that stands for several: 2 (bad plan) before 3 (environment) before 1 (a measurement failed) before
/// 4 (verification) before 5 (interrupted) before 0. Any code that the engine does not use counts as 3; a worker that
/// was killed counts as 1, a measurement that failed.
int worst_status(std::span<const int> codes);

}  // namespace sonde::ranks
