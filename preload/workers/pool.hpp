// SPDX-License-Identifier: Apache-2.0
// Thread pool of the library. Each thread does one transfer at a time.
#pragma once

namespace sonde::buffer {

/// Must be called before the first work is queued.
void install_worker_starter() noexcept;
void reset_workers_after_fork() noexcept;
/// Ends the threads; none is started again. Waits for their end for a limited time.
void stop_workers() noexcept;

}  // namespace sonde::buffer
