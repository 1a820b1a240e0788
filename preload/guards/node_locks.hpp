// SPDX-License-Identifier: Apache-2.0
// Detects other users of a file on this node.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Claims the file. Returns false if another process on this node writes it or, if we write, uses it at all.
bool claim_file_on_node(File& file, bool writes) noexcept;
void withdraw_claim(const File& file) noexcept;
/// Returns whether another process has claimed the file since, and one of the two writes.
bool is_claimed_by_others(const File& file) noexcept;
void reset_node_locks_after_fork() noexcept;
/// The descriptor behind `from` is now `to`.
void record_moved_lock_file(int from, int to) noexcept;
/// Closes the lock file for good, to give its descriptor back to the program. Buffering must be disabled before.
/// Returns whether the file was open.
bool close_node_locks() noexcept;
}  // namespace sonde::buffer
