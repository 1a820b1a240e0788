// SPDX-License-Identifier: Apache-2.0
// A hostile process that exchanges two names as fast as it can.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <string>

namespace sonde::tests {

/// Exchanges `first` and `second` (RENAME_EXCHANGE) until it is destroyed: as user 65534 where the tests run as root.
class Swapper {
 public:
    Swapper(const std::string& first, const std::string& second) : child_(::fork()) {
        if (child_ != 0) {
            return;
        }
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
            ::_exit(1);
        }
        for (;;) {
            ::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(), RENAME_EXCHANGE);
        }
    }
    Swapper(const Swapper&) = delete;
    Swapper& operator=(const Swapper&) = delete;
    ~Swapper() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }

 private:
    pid_t child_;
};

}  // namespace sonde::tests
