// SPDX-License-Identifier: Apache-2.0
// Whether buffering pays: how fast storage answers, what was gained, and when a file goes to sleep. The lock of the
// file is held.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

bool is_page_worthwhile(File& file, std::int64_t index) noexcept;
/// A page was read or written that may have been read ahead.
void count_used_read_ahead(File& file, Page& page) noexcept;
/// A page that was read ahead is dropped unread. Too many of them pause reading ahead.
void count_unused_read_ahead(File& file) noexcept;
/// A call of the program went straight to storage: its `bytes` that were not there before took `ns`.
void note_call(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// Records that a transfer of `bytes` by the library took `ns`.
void note_transfer(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// Storage answers as fast as memory: see profitability.cpp.
bool is_storage_fast(const File& file) noexcept;
/// Returns whether too few bytes were transferred to decide whether a full page or a thread pays.
bool is_rate_unknown(const File& file) noexcept;
/// How fast the kernel's cache is says nothing where we go around it.
bool uses_direct_io(const File& file) noexcept;
/// Counts a call for the question whether buffering pays; true when the file should go to sleep.
bool count_call(File& file, bool hit) noexcept;
/// Calls of the next sleep of a file whose last one was followed by nothing better.
std::uint32_t compute_next_suspension_calls(const File& file) noexcept;

}  // namespace sonde::buffer
