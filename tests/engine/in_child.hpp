// SPDX-License-Identifier: Apache-2.0
// Runs a check in a child process, where it may lose rights or system calls without harm to the other tests.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace sonde::tests {

/// Text that the child's check returned; "died of signal N" or "died with exit code N" when it did not return.
inline std::string in_child(const std::function<std::string()>& check) {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) {
        return "no pipe";
    }
    const pid_t child = ::fork();
    if (child == 0) {
        const std::string text = check();
        const ssize_t written = ::write(ends[1], text.data(), text.size());
        ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    std::string text;
    char piece[1024];
    for (ssize_t got = 0; (got = ::read(ends[0], piece, sizeof piece)) > 0;) {
        text.append(piece, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        return "died of signal " + std::to_string(WTERMSIG(status));
    }
    return WEXITSTATUS(status) == 0 ? text : "died with exit code " + std::to_string(WEXITSTATUS(status));
}

/// From now on this process gets `error` from the system call with that number, as a container's filter does it.
inline bool forbid(unsigned call, unsigned error) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = 4, .filter = filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace sonde::tests
