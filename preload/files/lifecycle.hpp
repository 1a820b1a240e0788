// SPDX-License-Identifier: Apache-2.0
// The table of files from open() to the last close(). Functions require the lock of the file unless stated otherwise.
#pragma once

#include <sys/stat.h>
#include <sys/vfs.h>
#include "model/file.hpp"

namespace sonde::buffer {

/// Returns the locked file of an open descriptor, created if a rule covers it. Requires the lock of the table of files.
/// `only_read`: through this descriptor nothing can be written.
File* find_or_create_file(int fd, const struct stat& status, settings::Rule* rule, const char* path,
                          bool only_read) noexcept;
/// Removes the file from the table and unlocks it. Requires the lock of the table of files.
void destroy_file(File& file) noexcept;
/// Refuses FAT (4 GiB limit, unstable inodes) and file systems of the kernel such as /proc.
bool does_file_system_allow_buffering(int fd, struct statfs& file_system_status) noexcept;
/// Returns whether only this node changes files of the file system, so that a lease notices every other process.
bool is_local_file_system(const struct statfs& file_system_status) noexcept;

}  // namespace sonde::buffer
