// SPDX-License-Identifier: Apache-2.0
// Profitability of buffering: response time of storage, time gained, and when a file is suspended. The lock of the
// file is held.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

bool is_page_worthwhile(File& file, std::int64_t index) noexcept;
/// Counts a page that may have been read ahead and that the program has now accessed.
void count_used_read_ahead(File& file, Page& page) noexcept;
/// Counts a page that was read ahead and evicted unread. Too many of these pause read-ahead.
void count_unused_read_ahead(File& file) noexcept;
/// Records a call that bypassed the pages: it moved `bytes` that the previous call did not touch, in `ns`.
void record_call_time(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// Records that a transfer of `bytes` by the library took `ns`.
void record_transfer_time(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept;
/// Returns whether storage answers about as fast as memory (thresholds: profitability.cpp).
bool is_storage_fast(const File& file) noexcept;
/// Returns whether too few bytes were transferred to decide whether full pages or threads are profitable.
bool is_rate_unknown(const File& file) noexcept;
/// Returns whether transfers use O_DIRECT: then the speed of the kernel's cache does not matter.
bool uses_direct_io(const File& file) noexcept;
/// Counts a call, with or without a cache hit. Returns true if buffering is not profitable and the file should be
/// suspended.
bool count_call(File& file, bool hit) noexcept;
/// Returns the length of the next suspension in calls; longer if buffering was unprofitable after the last one too.
std::uint32_t compute_next_suspension_calls(const File& file) noexcept;

}  // namespace sonde::buffer
