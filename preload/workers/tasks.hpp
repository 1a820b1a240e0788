// SPDX-License-Identifier: Apache-2.0
// What a thread of the library does with a file.
#pragma once

#include "cache/job.hpp"

namespace sonde::buffer {

/// Requires the lock of the file. Starts the next transfer; returns false when there is none.
bool begin_next_job(File& file, Job& job) noexcept;
/// One piece of work for this file; true when there is more. For the workers and for tests without threads.
bool do_next_job(File& file) noexcept;
/// Walks over all files for work that was not queued. Returns whether a file is active.
bool walk_over_files() noexcept;

}  // namespace sonde::buffer
