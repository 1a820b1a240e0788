// SPDX-License-Identifier: Apache-2.0
// The threads of the library: an ordinary crew, a few threads that each do one thing at a time, or one thread with a
// ring of the kernel (ring_worker.cpp).
#pragma once

namespace sonde::buffer {

/// Before the first work.
void install_workers() noexcept;
void workers_after_fork() noexcept;
/// From now on there are no threads of ours. Waits for their end, but not for long.
void stop_workers() noexcept;

}  // namespace sonde::buffer
