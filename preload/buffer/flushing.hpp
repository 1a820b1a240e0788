// SPDX-License-Identifier: Apache-2.0
// Dirty pages on their way to storage, and the errors that storage answers with. Unless said otherwise the lock of the
// file is held.
#pragma once

#include "buffer/file.hpp"

#include <sys/vfs.h>

namespace sonde::buffer {

void note_dirty(File& file, Page& page) noexcept;
/// What could not be written is the oldest again.
void note_still_dirty(File& file, Page& page) noexcept;
void forget_dirty(File& file, Page& page) noexcept;
/// Writes the oldest dirty page. 0 or a negative errno. Gives the lock back while it writes.
int write_oldest(File& file, bool program_waits) noexcept;
/// Until nothing is dirty, or the first error.
int flush_file(File& file) noexcept;
void keep_error(File& file, int error) noexcept;
bool take_error(File& file, Description& description, int& error) noexcept;
bool space_is_low(const File& file) noexcept;
bool space_is_low(const File& file, const struct statfs& about) noexcept;

}  // namespace sonde::buffer
