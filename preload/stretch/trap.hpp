// SPDX-License-Identifier: Apache-2.0
// Noticing the next system call of the program, whoever makes it: the C library inside printf(), a library that calls
// the kernel itself, the program's own assembler. Linux can stop a thread at each system call that comes from outside
// of a given range of code (PR_SET_SYSCALL_USER_DISPATCH, since 5.11) as long as one byte in memory says so. The range
// is our own code, so our own calls go through.
//
// x86-64 only so far. Where it is not to be had nothing is kept between calls, and reports say why.
#pragma once

#include <cstddef>

namespace sonde::stretch {

/// True from close_trap() to open_trap(): the next system call of the program stops and settles.
extern volatile unsigned char trap_closed;
/// A byte of libc: not 0 while no second thread was ever made. nullptr where this libc has none.
extern const char* single_threaded;

/// Once, before the first set_trap(). `settle` makes all as it would be without us, before a call of the program is
/// made; with `trapped` by bare system calls alone, because the C library may hold any lock.
void prepare_trap(void (*settle)(bool trapped) noexcept, void (*when_ready)() noexcept) noexcept;
/// Makes ready; false when it is not possible now, or at all (then why_no_trap() says why). Only for a process with one
/// thread. Not yet closed: calls of the program pass.
bool set_trap() noexcept;
/// From now on a stretch may last for so long, whatever the program does.
void start_clock() noexcept;
/// From here on the next system call that is not ours ends the stretch.
inline void close_trap() noexcept {
    trap_closed = 1;
}
inline void open_trap() noexcept {
    trap_closed = 0;
}
/// The opposite of set_trap(). Bare system calls only.
void take_trap_away() noexcept;
/// True when the time a stretch may last was over while we could not be interrupted: settle now.
bool time_is_up() noexcept;
/// Calls of the program that were let pass in this stretch, because nobody can learn anything by them.
unsigned harmless_calls() noexcept;
/// For good: the reason is for reports. Settles first.
void forbid_trap(const char* reason) noexcept;
/// nullptr while it is possible.
const char* why_no_trap() noexcept;
/// One thread, and so far nothing forbids it: the question asked at each call.
bool trap_is_possible() noexcept;
/// In the child of a fork neither the trap nor its timer is there.
void trap_after_fork() noexcept;
/// The handler of SIGSYS is ours: to the program there is none.
bool is_trap_handler(const void* handler) noexcept;
/// The other stack for handlers is ours: to the program there is none.
bool is_trap_stack(const void* stack) noexcept;

}  // namespace sonde::stretch
