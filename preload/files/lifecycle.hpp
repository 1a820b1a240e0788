// SPDX-License-Identifier: Apache-2.0
// The table of files from open() to the last close(). Functions require the lock of the file unless stated otherwise.
#pragma once

#include <sys/stat.h>
#include <sys/vfs.h>
#include "model/file.hpp"

namespace sonde::buffer {

/// Both with the table of files locked. The file of an open descriptor, locked; made when a rule covers it.
/// `only_read`: through this descriptor nothing can be written.
File* find_or_create_file(int fd, const struct stat& got, settings::Rule* rule, const char* path,
                          bool only_read) noexcept;
/// Back to the state of a fresh object, and unlocked.
void destroy_file(File& file) noexcept;
/// FAT ends at 4 GiB and has no inodes that last; files of the kernel are no files.
bool does_file_system_allow_buffering(int fd, struct statfs& about) noexcept;
/// PoolWithoutThreads but the kernel of this node changes its files, so that the kernel's leases tell of everybody.
bool is_local_file_system(const struct statfs& about) noexcept;

}  // namespace sonde::buffer
