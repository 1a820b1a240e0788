// SPDX-License-Identifier: Apache-2.0
// Calls that share memory with other processes, give a thread its own tables, or limit system calls.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"

#include <sys/prctl.h>
#include <sys/shm.h>

void* wrap_shmat(int segment, const void* where, int flags) {
    if ((flags & SHM_RDONLY) == 0) {
        sonde::buffer::record_shared_map(-1);
    }
    return NEXT(shmat)(segment, where, flags);
}
int wrap_unshare(int flags) {
    sonde::intercept::disable_before_namespace_change();
    return NEXT(unshare)(flags);
}
int wrap_setns(int fd, int kind) {
    sonde::intercept::disable_before_namespace_change();
    return NEXT(setns)(fd, kind);
}
int wrap_prctl(int option, long a, long b, long c, long d) {
    if (option == PR_SET_SECCOMP) {
        sonde::intercept::disable_before_syscall_filter();
    }
    return NEXT(prctl)(option, a, b, c, d);
}
