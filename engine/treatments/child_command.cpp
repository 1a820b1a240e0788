// SPDX-License-Identifier: Apache-2.0
// Runs commands with posix_spawn, process groups and pipes.
#include "treatments/child_command.hpp"

#include "records/program_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

extern char** environ;

namespace sonde::treatments {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int poll_ms = 50;
constexpr std::chrono::seconds kill_delay{2};  ///< between SIGTERM and SIGKILL

/// The environment with `variable` added, or replaced when it exists.
std::vector<char*> make_environment(const std::string& variable) {
    std::vector<char*> all;
    const std::string_view name(variable.data(), std::min(variable.find('=') + 1, variable.size()));
    for (char** variable_pointer = environ; *variable_pointer != nullptr; ++variable_pointer) {
        if (name.empty() || std::string_view(*variable_pointer).substr(0, name.size()) != name) {
            all.push_back(*variable_pointer);
        }
    }
    if (!variable.empty()) {
        all.push_back(const_cast<char*>(variable.c_str()));
    }
    all.push_back(nullptr);
    return all;
}

double to_seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// 0 or errno; the child's standard error goes to `errors`.
int spawn(const std::vector<std::string>& arguments, const std::string& variable, int errors, pid_t& child) {
    std::vector<char*> argument_pointers;
    argument_pointers.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) {
        argument_pointers.push_back(const_cast<char*>(argument.c_str()));
    }
    argument_pointers.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             static_cast<short>(POSIX_SPAWN_SETPGROUP | records::set_default_signals(attributes)));
    std::vector<char*> variables = make_environment(variable);
    const int failed =
        ::posix_spawnp(&child, argument_pointers[0], &files, &attributes, argument_pointers.data(), variables.data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

/// Reads available output; stores the first line and discards the remainder. Returns false at the end of the stream.
bool read_first_line(int errors, std::string& line, bool& complete) {
    constexpr std::size_t longest = 400;
    std::array<char, 4096> piece{};
    for (;;) {
        const ssize_t got = ::read(errors, piece.data(), piece.size());
        if (got <= 0) {
            return got < 0 && (errno == EAGAIN || errno == EINTR);
        }
        for (const char c : std::string_view(piece.data(), static_cast<std::size_t>(got))) {
            complete = complete || (c == '\n' && !line.empty());
            if (!complete && c != '\n' && line.size() < longest) {
                line += c;
            }
        }
    }
}

/// Waits for the child and reads its output, so that it does not block on a full pipe.
int wait_for_child(pid_t child, int errors, const StopPredicate& stop, CommandResult& result) {
    int status = 0;
    bool complete = false;
    bool open = true;
    Clock::time_point killed_at{};
    for (;;) {
        rusage used{};
        const pid_t ended = ::wait4(child, &status, WNOHANG, &used);
        if (ended == child) {
            result.user_s = to_seconds(used.ru_utime);
            result.system_s = to_seconds(used.ru_stime);
            break;
        }
        if (ended < 0 && errno != EINTR) {
            result.start_error = errno;  // another wait() read its status
            break;
        }
        if (!result.stopped && stop && stop()) {
            result.stopped = true;
            killed_at = Clock::now();
            ::kill(-child, SIGTERM);
        }
        if (result.stopped && Clock::now() - killed_at > kill_delay) {
            ::kill(-child, SIGKILL);
        }
        pollfd events{.fd = open ? errors : -1, .events = POLLIN, .revents = 0};
        ::poll(&events, 1, poll_ms);
        open = open && read_first_line(errors, result.first_line, complete);
    }
    read_first_line(errors, result.first_line, complete);
    return status;
}

}  // namespace

std::string CommandResult::reason() const {
    std::string text;
    if (start_error != 0) {
        text = std::string("it could not be started (") + std::strerror(start_error) + ")";
    } else if (stopped) {
        text = "it was stopped";
    } else if (signal != 0) {
        text = "signal " + std::to_string(signal);
    } else {
        text = "exit code " + std::to_string(exit_code);
    }
    return first_line.empty() ? text : text + ": " + first_line;
}

CommandResult run_program(const std::vector<std::string>& arguments, const StopPredicate& stop,
                          const std::string& variable) {
    CommandResult result;
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        result.start_error = errno;
        return result;
    }
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t child = -1;
    result.start_error = spawn(arguments, variable, ends[1], child);
    ::close(ends[1]);
    if (result.start_error == 0) {
        const int status = wait_for_child(child, ends[0], stop, result);
        if (WIFSIGNALED(status)) {
            result.signal = WTERMSIG(status);
        } else {
            result.exit_code = WEXITSTATUS(status);
        }
        if (result.stopped) {
            ::kill(-child, SIGKILL);  // remaining children of the shell
        }
    }
    ::close(ends[0]);
    return result;
}

CommandResult run_shell(const std::string& command, const StopPredicate& stop, const std::string& variable) {
    return run_program({"/bin/sh", "-c", command}, stop, variable);
}

}  // namespace sonde::treatments
