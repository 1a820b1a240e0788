// SPDX-License-Identifier: Apache-2.0
#include "backends/io_uring_errors.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace sonde::backends {

std::string explain_uring_setup_error(int error) {
    if (error == ENOSYS) {
        return "This kernel has no io_uring, or a seccomp filter hides it: use Linux 5.6 or later and allow "
               "io_uring_setup "
               "in the container's filter, or use the backend posix.";
    }
    if (error == EPERM || error == EACCES) {
        int disabled_for = 0;
        std::ifstream("/proc/sys/kernel/io_uring_disabled") >> disabled_for;
        if (disabled_for != 0) {
            return "The system setting kernel.io_uring_disabled = " + std::to_string(disabled_for) +
                   " forbids io_uring: ask for `sysctl kernel.io_uring_disabled=0`, or use the backend posix.";
        }
        return "io_uring is forbidden here, probably by the seccomp filter of a container: allow io_uring_setup (for "
               "example `--security-opt seccomp=unconfined`), or use the backend posix.";
    }
    if (error == ENOMEM) {
        return "The limit on locked memory is too low for the io_uring queue: raise it with `ulimit -l`, lower "
               "io.queue_depth, or use the backend posix.";
    }
    if (error == EMFILE || error == ENFILE) {
        return "No file descriptor is left for the io_uring queue: raise the limit with `ulimit -n`.";
    }
    return std::string("io_uring could not be started: ") + std::strerror(error) + "; use the backend posix.";
}

}  // namespace sonde::backends
