// SPDX-License-Identifier: Apache-2.0
// What makes a process less alone than it was: memory that it shares. And what leaves it with fewer system calls.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"

#include <sys/prctl.h>
#include <sys/shm.h>

namespace {

constexpr int set_dispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH, which older headers do not have
constexpr const char* shares = "the program shares memory with others";

}  // namespace

void* wrap_shmat(int segment, const void* where, int flags) {
    sonde::stretch::forbid_trap(shares);
    if ((flags & SHM_RDONLY) == 0) {
        sonde::buffer::note_shared_map(-1);
    }
    return NEXT(shmat)(segment, where, flags);
}
sem_t* wrap_sem_open(const char* name, int flags, mode_t mode, unsigned value) {
    sonde::stretch::forbid_trap(shares);
    return NEXT(sem_open)(name, flags, mode, value);
}
int wrap_unshare(int flags) {
    sonde::intercept::before_parting();
    return NEXT(unshare)(flags);
}
int wrap_setns(int fd, int kind) {
    sonde::intercept::before_parting();
    return NEXT(setns)(fd, kind);
}
int wrap_prctl(int option, long a, long b, long c, long d) {
    if (option == PR_SET_SECCOMP) {
        sonde::intercept::before_filter();
    } else if (option == set_dispatch) {
        sonde::stretch::forbid_trap("the program stops itself at system calls");
    }
    return NEXT(prctl)(option, a, b, c, d);
}
