// SPDX-License-Identifier: Apache-2.0
// What one process used, as the kernel counted it. Put before the program under mpiexec it speaks for each rank.
#include "raw.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sonde::bench {

namespace {

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

int run_child(const std::string& out, std::span<char*> arguments) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::execvp(arguments[0], arguments.data());
        std::perror(arguments[0]);
        ::_exit(127);
    }
    int status = 0;
    rusage use{};
    if (child < 0 || ::wait4(child, &status, 0, &use) != child) {
        throw RawError(std::string("cannot run ") + arguments[0] + ": " + std::strerror(errno));
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    // One file a process: ranks must not overwrite each other.
    const std::string path = out + "." + std::to_string(::getpid());
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) {
        throw RawError("cannot write " + path + ": " + std::strerror(errno));
    }
    std::fprintf(file, "{\"exit_code\": %d, \"peak_kib\": %ld, \"user_s\": %.6f, \"system_s\": %.6f}\n", code,
                 use.ru_maxrss, seconds(use.ru_utime), seconds(use.ru_stime));
    std::fclose(file);
    return code;
}

}  // namespace sonde::bench
