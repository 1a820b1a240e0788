// SPDX-License-Identifier: Apache-2.0
// The dirty pages of a file, in the order in which they became dirty, and the errors that storage answered with. The
// lock of the file is held.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

void mark_page_dirty(File& file, Page& page) noexcept;
/// Puts a page that could not be written back to the front of the queue of dirty pages.
void requeue_dirty_page(File& file, Page& page) noexcept;
void mark_page_clean(File& file, Page& page) noexcept;
void store_error(File& file, int error) noexcept;
bool consume_error(File& file, Description& description, int& error) noexcept;
/// With `appends`, after `bytes` were written, whereupon the kernel's file had `size`: that is ours alone, or it grew.
void check_appended_size(File& file, std::uint64_t bytes, std::int64_t size) noexcept;

}  // namespace sonde::buffer
