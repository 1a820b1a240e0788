// SPDX-License-Identifier: Apache-2.0
// Who says "alone" and is not: processes that work on common files tell each other through memory that they share,
// which nobody can see. Two signs of it are certain enough to end all buffering: a fork that leaves writable memory to
// both (PostgreSQL), and locks on parts of a file that is mapped to be written (SQLite's log, LMDB).
#pragma once

namespace sonde::buffer {

/// Records a shared writable mapping of the file behind `fd`, or of memory without a file (-1).
void record_shared_map(int fd) noexcept;
/// The program locks a part of this file.
void record_range_lock(int fd) noexcept;
/// In both processes after a fork. A parent goes on when the memory has a name: ranks of MPI share such memory, and
/// what they fork becomes another program mostly.
void check_shared_memory_after_fork(bool child) noexcept;

}  // namespace sonde::buffer
