// SPDX-License-Identifier: Apache-2.0
// Runs a program of a file system (`beegfs-ctl`, `mmlsattr`) and reads its output.
#pragma once

#include <spawn.h>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace sonde::records {

struct ProgramOutput {
    int exit_code = -1;      ///< exit code; -1 when it could not be started or was ended by a signal
    std::string text;        ///< standard output and error; or why it was not started or was killed
    bool timed_out = false;  ///< it exceeded its time limit and was killed
    bool succeeded() const { return exit_code == 0; }
    std::string first_line() const;
    /// The last non-empty line, where programs usually write the reason of a failure.
    std::string last_line() const;
};

/// "`mmlsdisk`: why": the command that failed, and its message, which may be empty.
std::string describe_failure(const std::string& command, const std::string& output);

/// Sets no blocked signals and default handlers for a program, because the engine may block or ignore signals. Returns
/// the flags for posix_spawnattr_setflags().
short set_default_signals(posix_spawnattr_t& attributes);

/// Default time limit: tools of a file system wait forever when a server does not answer.
constexpr std::chrono::milliseconds default_time_limit{10'000};

/// Runs a program from PATH without a shell, with standard input at /dev/null, and waits for it. Stores the first
/// `most` bytes of its output. A program that exceeds `limit` is killed with its process group.
ProgramOutput run_and_read(const std::vector<std::string>& arguments, std::size_t most = 262144,
                           std::chrono::milliseconds limit = default_time_limit);

}  // namespace sonde::records
