// SPDX-License-Identifier: Apache-2.0
// The table of files, by inode and by descriptor. Functions require the lock of the file
// unless stated otherwise.
#pragma once

#include "model/file.hpp"

#include <sys/stat.h>

namespace sonde::buffer {

/// Returns the hash bucket of a file in BufferState::files.
std::uint32_t compute_file_bucket(dev_t device, ino_t inode) noexcept;
/// Returns the file locked, or nullptr. Requires the lock of the table of files.
File* find_file_in_locked_table(dev_t device, ino_t inode) noexcept;
/// Like find_file_in_locked_table(), but locks the table of files itself.
File* find_file(dev_t device, ino_t inode) noexcept;
File* lock_file_of_descriptor(int fd, Description*& description) noexcept;
/// Returns whether the file behind a descriptor is buffered. Requires no lock.
bool is_active(int fd) noexcept;
void choose_file_descriptors(File& file) noexcept;
bool read_status(int fd, struct stat& status) noexcept;
/// Returns the kernel's size of the file behind a descriptor, or -1.
std::int64_t read_size_from_kernel(int fd) noexcept;
/// Updates the size, because another process may have enlarged the file; where the library appends, it only records
/// that.
void update_size_from_kernel(File& file) noexcept;
/// Calls `visit(file)` for every registered file with its lock held. Skips files whose lock is not free within the
/// limit.
void for_each_file(void (*visit)(File&), std::int64_t lock_limit_ns = -1) noexcept;

}  // namespace sonde::buffer
