// SPDX-License-Identifier: Apache-2.0
// Runs a function in every process of a forked team, in the middle of a test.
#pragma once

#include "ranks/team_factory.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>

namespace sonde::tests {

/// The function's result is the exit code of its process. No process runs longer than `seconds`: a hang is a failure.
using InTeam = std::function<int(ranks::Team&)>;

/// Starts the team below a process of its own, since the parent of a team exits with it. Returns that process.
inline pid_t start_team(int processes, const InTeam& body, unsigned seconds = 30) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child != 0) {
        return child;
    }
    int code = 99;
    // The test program catches these to name the test that crashed; here they mean what they usually do.
    for (const int signal : {SIGTERM, SIGINT, SIGABRT, SIGSEGV}) {
        std::signal(signal, SIG_DFL);
    }
    try {
        ranks::TeamRequest request;
        request.launch = ranks::LaunchMode::forked;
        request.processes = processes;
        const auto team = ranks::form_team(request);
        alarm(seconds);
        code = body(*team);
        if (code == 0) {
            team->finish();
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "in a team: %s\n", error.what());
    }
    std::fflush(nullptr);
    _exit(code);
}

/// Exit code of a process, or 1000 + the signal that ended it.
inline int status_of(pid_t process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline int in_team(int processes, const InTeam& body) {
    return status_of(start_team(processes, body));
}

}  // namespace sonde::tests
