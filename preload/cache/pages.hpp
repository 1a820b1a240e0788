// SPDX-License-Identifier: Apache-2.0
// Pages of a file: find, allocate, release, fill. Functions require the lock of the file unless stated otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

Page* find_page(File& file, std::int64_t index) noexcept;
/// A page for `index`, newest in use. `again` means that the lock was given back: look again. nullptr without `again`:
/// no memory for it.
Page* allocate_page(File& file, std::int64_t index, bool& again, bool may_wait = true) noexcept;
/// The page that a stream comes from becomes the one for `index`, when there are some others: its memory is in the
/// processor's cache. nullptr when that cannot be.
Page* reuse_page_behind_stream(File& file, std::int64_t index, bool backward) noexcept;
void mark_page_used(File& file, Page& page) noexcept;
void drop_page(File& file, Page& page) noexcept;  ///< its dirty bytes are forgotten
void drop_all_pages(File& file) noexcept;
void release_pages_of_parent() noexcept;
bool allocate_page_buckets(File& file) noexcept;
void free_page_buckets(File& file) noexcept;
/// Reads the missing parts of [begin, end) from storage. Returns 0 or a negative errno. Releases the lock while it
/// reads.
int load_page_range(File& file, Page& page, std::uint32_t begin, std::uint32_t end, bool program_waits) noexcept;

}  // namespace sonde::buffer
