// SPDX-License-Identifier: Apache-2.0
#include "records/program_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace sonde::records {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

/// Returns -1 and sets `failed` to errno on failure.
pid_t start_program(const std::vector<std::string>& arguments, int output, int& failed) {
    std::vector<char*> argument_pointers;
    for (const std::string& word : arguments) {
        argument_pointers.push_back(const_cast<char*>(word.c_str()));
    }
    argument_pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A separate process group, so that it can be killed with its children.
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, static_cast<short>(set_default_signals(attributes) | POSIX_SPAWN_SETPGROUP));
    pid_t child = -1;
    failed = posix_spawnp(&child, argument_pointers[0], &actions, &attributes, argument_pointers.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? child : -1;
}

/// Remaining milliseconds, rounded up.
int compute_remaining(TimePoint end) {
    const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, remaining.count()));
}

/// Returns false when the peer did not close the pipe in time.
bool read_all(int input, std::string& text, std::size_t most, TimePoint end) {
    std::array<char, 8192> piece{};
    for (;;) {
        pollfd events{input, POLLIN, 0};
        const int ready = ::poll(&events, 1, compute_remaining(end));
        if (ready == 0) {
            return false;
        }
        const ssize_t got = ready < 0 ? -1 : ::read(input, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return true;
        }
        if (text.size() < most) {
            text.append(piece.data(), static_cast<std::size_t>(got));
        }
    }
}

/// Waits for a program that has closed its output. Returns false when it did not exit in time.
bool wait_for_end(pid_t child, int& status, TimePoint end) {
    constexpr timespec glance{0, 1'000'000};
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR)) {
            return true;
        }
        if (compute_remaining(end) == 0) {
            return false;
        }
        ::nanosleep(&glance, nullptr);
    }
}

}  // namespace

short set_default_signals(posix_spawnattr_t& attributes) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    return POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
}

std::string ProgramOutput::first_line() const {
    return text.substr(0, text.find('\n'));
}

std::string ProgramOutput::last_line() const {
    const std::size_t end = text.find_last_not_of(" \t\r\n");
    if (end == std::string::npos) {
        return {};
    }
    const std::size_t before = text.find_last_of('\n', end);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return text.substr(begin, end - begin + 1);
}

std::string describe_failure(const std::string& command, const std::string& output) {
    return "`" + command + "`: " + (output.empty() ? "it failed and says nothing" : output);
}

ProgramOutput run_and_read(const std::vector<std::string>& arguments, std::size_t most,
                           std::chrono::milliseconds limit) {
    ProgramOutput result;
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        result.text = std::strerror(errno);
        return result;
    }
    int failed = 0;
    const pid_t child = start_program(arguments, ends[1], failed);
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        result.text = std::strerror(failed);
        return result;
    }
    const TimePoint end = std::chrono::steady_clock::now() + limit;
    int status = 0;
    result.timed_out = !read_all(ends[0], result.text, most, end) || !wait_for_end(child, status, end);
    ::close(ends[0]);
    if (result.timed_out) {
        ::kill(-child, SIGKILL);
        // A process in an uninterruptible system call ends later; do not wait for it.
        wait_for_end(child, status, std::chrono::steady_clock::now() + std::chrono::seconds(1));
        result.text = "no answer within " + std::to_string((limit.count() + 999) / 1000) + " s, so it was ended";
        return result;
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
}

}  // namespace sonde::records
