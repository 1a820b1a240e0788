// SPDX-License-Identifier: Apache-2.0
// When the library begins, is copied by fork, and ends.
#pragma once

namespace sonde::intercept {

void prepare_fork() noexcept;
void after_fork(bool child) noexcept;
/// Before exec: whatever only lives in memory is written out, because it may be the last chance.
void before_exec() noexcept;
/// Before the process ends without destructors.
void at_end() noexcept;
void* real_vfork() noexcept;
/// Before the program limits its own system calls: ours may end the process then.
void before_filter() noexcept;
/// Before a thread gets tables or spaces of its own, which the kernel refuses to a process with more threads, and
/// before the main thread ends alone: ours are gone, and nothing is kept.
void before_separation() noexcept;

}  // namespace sonde::intercept
