// SPDX-License-Identifier: Apache-2.0
// Worker processes forked by the engine itself, and the parent that waits for them.
#pragma once

#include "ranks/team.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace sonde::ranks {

/// Resources of a node that limit the number of processes.
struct ProcessCapacity {
    std::uint64_t process_ids = 0;  ///< free process ids (kernel.pid_max minus running threads)
    std::uint64_t memory = 0;       ///< bytes available
};
ProcessCapacity read_process_capacity();

/// Empty when `processes` fit on this node, else one sentence with the limit.
std::string explain_process_shortage(int processes, const ProcessCapacity& available);

/// Forks `processes` workers and returns the team in each of them. The parent never returns: it forwards SIGINT,
/// SIGTERM and SIGHUP to the workers, waits for all of them, and exits with select_worst_status() of their codes. Must
/// be called before the process creates threads. Throws TeamError when fork fails.
std::unique_ptr<Team> fork_team(int processes);

/// Exit codes of processes, as in phases/outcome.hpp.
inline constexpr int exit_failed = 1, exit_environment = 3, exit_interrupted = 5;

/// The most important of several exit codes: 2 (bad plan) before 3 (environment) before 1 (a measurement failed) before
/// 4 (verification) before 5 (interrupted) before 0. Unknown codes count as 3. A worker that was killed counts as 1.
int select_worst_status(std::span<const int> codes);

}  // namespace sonde::ranks
