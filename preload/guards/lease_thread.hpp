// SPDX-License-Identifier: Apache-2.0
// The thread that receives the kernel's signal when another process opens a file on which this process has a lease.
#pragma once

namespace sonde::buffer {

/// The signal by which the kernel notifies the lease thread. It is sent to this thread alone, which has it blocked and
/// waits for it: no handler runs anywhere, and the program may use the same number.
inline constexpr int lease_signal = 62;

/// Sets the function that the thread calls with the descriptor of the lease, or with -1 to check all leases.
void set_lease_break_handler(void (*handler)(int fd) noexcept) noexcept;
/// Starts the thread if it does not run. Returns its kernel thread id; 0 if it cannot be started.
int start_lease_thread() noexcept;
/// True while the thread is there.
bool has_lease_thread() noexcept;
/// Ends the thread and prevents a new one. Waits briefly for its end. No lease may be held.
void end_lease_thread() noexcept;
void reset_lease_thread_after_fork() noexcept;

}  // namespace sonde::buffer
