// SPDX-License-Identifier: Apache-2.0
// The table of files, by inode and by descriptor. Functions require the lock of the file
// unless stated otherwise.
#pragma once

#include "model/file.hpp"

#include <sys/stat.h>

namespace sonde::buffer {

/// The bucket of a file in BufferState::files.
std::uint32_t compute_file_bucket(dev_t device, ino_t inode) noexcept;
/// With the table of files locked: the file, locked, or nullptr.
File* find_locked_file(dev_t device, ino_t inode) noexcept;
/// The same, which locks the table meanwhile.
File* find_file(dev_t device, ino_t inode) noexcept;
File* lock_file_of_descriptor(int fd, Description*& description) noexcept;
/// Without a lock: false when nothing of the file behind a descriptor is held.
bool is_active(int fd) noexcept;
void choose_file_descriptors(File& file) noexcept;
bool read_status(int fd, struct stat& status) noexcept;
/// What the kernel says the size behind a descriptor is, or -1.
std::int64_t read_size_from_kernel(int fd) noexcept;
/// Another process may have enlarged the file: takes the larger size, or notes it where the library appends.
void update_size_from_kernel(File& file) noexcept;
/// Calls `visit(file)` for every known file with its lock held (or not at all, when it is not to be had in time).
void for_each_file(void (*visit)(File&), std::int64_t lock_limit_ns = -1) noexcept;

}  // namespace sonde::buffer
