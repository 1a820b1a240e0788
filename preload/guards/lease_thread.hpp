// SPDX-License-Identifier: Apache-2.0
// The thread that the kernel tells when another process wants a file on which we hold a lease.
#pragma once

namespace sonde::buffer {

/// The signal by which the kernel tells it. It is sent to this thread alone, which has it blocked and waits for it: no
/// handler runs anywhere, and the program may use the same number.
inline constexpr int lease_signal = 62;

/// The function that the thread calls with the descriptor of the lease, or with -1 when all leases must be checked.
void set_lease_break_handler(void (*handler)(int fd) noexcept) noexcept;
/// The kernel's number of the thread, which is started when there is none; 0 when there can be none.
int start_lease_thread() noexcept;
/// True while the thread is there.
bool has_lease_thread() noexcept;
/// From now on there is none. Waits for its end, but not for long. No lease may be held.
void end_lease_thread() noexcept;
void lease_thread_after_fork() noexcept;

}  // namespace sonde::buffer
