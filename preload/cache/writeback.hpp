// SPDX-License-Identifier: Apache-2.0
// Write-back of dirty pages, and the errors that storage returns. Functions require the lock of the
// file unless stated otherwise.
#pragma once

#include "cache/dirty_pages.hpp"

#include <sys/vfs.h>

namespace sonde::buffer {

/// Writes the oldest dirty page. Returns 0 or a negative errno. Releases the lock while it writes.
int write_oldest(File& file, bool program_waits) noexcept;
/// Writes all dirty pages until the first error. Returns 0 or a negative errno.
int flush_file(File& file) noexcept;
/// Data is held back only while the free space and the quota certainly cover it: else each write goes straight, so that
/// an error comes at its own call. Asks the file system, at most every 0.1 s, and hands everything over when it is low.
void check_space(File& file) noexcept;
bool is_space_low(const struct statfs& file_system_status) noexcept;

}  // namespace sonde::buffer
