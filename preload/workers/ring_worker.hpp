// SPDX-License-Identifier: Apache-2.0
// The thread that has the kernel work at several pages at a time.
#pragma once

namespace sonde::buffer {

/// 0 or a negative errno; 0 too when it is open. With the lock of the crew held.
int open_ring() noexcept;
void* work_with_ring(void*) noexcept;
/// Wakes the thread that waits for the ring.
void wake_ring() noexcept;
void ring_after_fork() noexcept;

}  // namespace sonde::buffer
