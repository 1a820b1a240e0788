// SPDX-License-Identifier: Apache-2.0
// Guards: they keep other processes from reading a file whose newest data is in pages, and from changing it unnoticed.
//
// The kernel's lease (fcntl F_SETLEASE) does it exactly on file systems of this node: who opens or truncates the file
// waits until we have written everything and given the lease up. The kernel tells a thread of the library, never one of
// the program. Elsewhere the user's word counts, and the table of the node (node_locks.hpp).
//
// Functions require the lock of the file unless stated otherwise.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// Called before the file is buffered. Returns nullptr if it may be, else the reason why not.
const char* establish_guard(File& file) noexcept;
/// Releases the lease of a file whose data was flushed and that is no longer active. Other guards stay.
void release_lease(File& file) noexcept;
/// Called after the descriptor with the lease was closed, which ended the lease.
void forget_lease(File& file) noexcept;
/// The file has no descriptor any more.
void release_guard(File& file) noexcept;

/// Another process waits for the file.
bool is_lease_broken(const File& file) noexcept;
/// Leases that are held by this process.
extern std::atomic<std::uint32_t> leases_held;
/// The program is about to open `path`: true when a lease that we hold may be for this file, so that it must be given
/// up first. False may be wrong (another name of the file): then the kernel makes the program wait for our thread.
bool may_break_own_lease(const char* path) noexcept;

}  // namespace sonde::buffer
