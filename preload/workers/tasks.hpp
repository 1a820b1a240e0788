// SPDX-License-Identifier: Apache-2.0
// What a thread of the library does with a file.
#pragma once

#include "cache/job.hpp"

namespace sonde::buffer {

/// With the lock of the file held: begins what is to be done next; false when there is nothing.
bool begin_next(File& file, Job& job) noexcept;
/// One piece of work for this file; true when there is more. For the workers and for tests without threads.
bool work_once(File& file) noexcept;
/// Looks at all files for what nobody was called for. True when a file is active.
bool walk_over_files() noexcept;

}  // namespace sonde::buffer
