// SPDX-License-Identifier: Apache-2.0
// Work of the threads of the library: transfers and periodic walks over all files.
#pragma once

#include "cache/page_transfer.hpp"

namespace sonde::buffer {

/// Requires the lock of the file. Starts the next transfer; returns false when there is none.
bool begin_next_job(File& file, PageTransfer& job) noexcept;
/// Does one job of this file. Returns true if there are more. Also called by tests without threads.
bool do_next_job(File& file) noexcept;
/// Walks over all files for work that was not queued. Returns whether a file is active.
bool walk_over_files() noexcept;

}  // namespace sonde::buffer
