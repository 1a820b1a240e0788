// SPDX-License-Identifier: Apache-2.0
// When the library begins, is copied by fork, and ends.
#pragma once

#include <atomic>

namespace sonde::intercept {

void prepare_fork() noexcept;
void after_fork(bool child) noexcept;
/// Before exec: whatever only lives in memory is written out, because it may be the last chance.
void before_exec() noexcept;
/// Before the process ends without destructors.
void at_end() noexcept;
void* real_vfork() noexcept;
/// Faults that would end the program are seen first from now on (signals.cpp).
void start_guarding() noexcept;
/// Before the program limits its own system calls: ours may end the process then.
void before_filter() noexcept;
/// Before a thread gets tables or spaces of its own, which the kernel refuses to a process with more threads, and
/// before the main thread ends alone: ours are gone, and nothing is kept.
void before_parting() noexcept;

extern std::atomic<bool> vforked;
bool in_borrowed_memory_slow() noexcept;
/// True in the child of vfork, which works in the memory of its parent: what it does to descriptors is not the
/// parent's.
inline bool in_borrowed_memory() noexcept {
    return vforked.load(std::memory_order_relaxed) && in_borrowed_memory_slow();
}

}  // namespace sonde::intercept
