// SPDX-License-Identifier: Apache-2.0
// System calls without libc: no errno, no cancellation, no other library in between. For housekeeping only; the I/O of
// the program goes through the next library in line (intercept/next.hpp), so that we stack with other tools.
#pragma once

#include <sys/syscall.h>

// Younger than the oldest kernel headers that we are built with; the same numbers on all machines.
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

namespace sonde::raw {

/// Makes a system call without libc. Returns the kernel's result: >= 0, or a negative errno.
#if defined(__x86_64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept {
    long result = number;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept {
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = a;
    register long x1 asm("x1") = b;
    register long x2 asm("x2") = c;
    register long x3 asm("x3") = d;
    register long x4 asm("x4") = e;
    register long x5 asm("x5") = f;
    asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "The preload library knows the system calls of x86-64 and aarch64 only"
#endif

inline long pointer_to_number(const void* pointer) noexcept {
    return reinterpret_cast<long>(pointer);
}

}  // namespace sonde::raw
