// SPDX-License-Identifier: Apache-2.0
// Start of the library, fork(), exec() and end of the process.
#pragma once

namespace sonde::intercept {

void prepare_fork() noexcept;
void finish_fork(bool child) noexcept;
/// Flushes all data before exec(), which discards the memory of the process.
void flush_before_exec() noexcept;
/// Flushes all data before the process ends without destructors.
void flush_at_process_end() noexcept;
void* real_vfork() noexcept;
/// Disables buffering before the program installs a system call filter, which could end the process at our calls.
void disable_before_syscall_filter() noexcept;
/// Before a thread gets tables or spaces of its own, which the kernel refuses to a process with more threads, and
/// before the main thread ends alone: ours are gone, and nothing is kept.
void disable_before_namespace_change() noexcept;

}  // namespace sonde::intercept
