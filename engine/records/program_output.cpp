// SPDX-License-Identifier: Apache-2.0
#include "records/program_output.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace sonde::records {
namespace {

/// -1 with an errno in `failed`.
pid_t start(const std::vector<std::string>& arguments, int output, int& failed) {
    std::vector<char*> words;
    for (const std::string& word : arguments) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, default_signals(attributes));
    pid_t child = -1;
    failed = posix_spawnp(&child, words[0], &actions, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? child : -1;
}

void take_all(int input, std::string& text, std::size_t most) {
    std::array<char, 8192> piece{};
    for (;;) {
        const ssize_t got = ::read(input, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return;
        }
        if (text.size() < most) {
            text.append(piece.data(), static_cast<std::size_t>(got));
        }
    }
}

}  // namespace

short default_signals(posix_spawnattr_t& attributes) {
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

ProgramOutput output_of(const std::vector<std::string>& arguments, std::size_t most) {
    ProgramOutput result;
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        result.text = std::strerror(errno);
        return result;
    }
    int failed = 0;
    const pid_t child = start(arguments, ends[1], failed);
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        result.text = std::strerror(failed);
        return result;
    }
    take_all(ends[0], result.text, most);
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
}

}  // namespace sonde::records
