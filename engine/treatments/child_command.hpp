// SPDX-License-Identifier: Apache-2.0
// Commands of the user that run before a phase.
#pragma once

#include "treatments/background.hpp"

#include <string>
#include <vector>

namespace sonde::treatments {

struct CommandResult {
    int start_error = 0;              ///< errno when it could not be started
    bool stopped = false;             ///< killed because `stop` returned true
    int exit_code = 0;                ///< when it exited
    int signal = 0;                   ///< when a signal ended it
    std::string first_line;           ///< of its standard error
    double user_s = 0, system_s = 0;  ///< CPU time of the program and of the children that it waited for
    bool ok() const { return start_error == 0 && !stopped && exit_code == 0 && signal == 0; }
    /// "exit code 3: cannot open …" for a sentence.
    std::string reason() const;
};

/// Runs a program with standard input and output at /dev/null, in a separate process group, and waits. When `stop`
/// returns true, the group receives SIGTERM and, two seconds later, SIGKILL. `variable` ("NAME=value") is added to its
/// environment unless it is empty.
CommandResult run_program(const std::vector<std::string>& arguments, const StopPredicate& stop,
                          const std::string& variable = {});

/// The same with `/bin/sh -c command`.
CommandResult run_shell(const std::string& command, const StopPredicate& stop, const std::string& variable = {});

}  // namespace sonde::treatments
