// SPDX-License-Identifier: Apache-2.0
// The files that are known, from open() to the last close(). Unless said otherwise the lock of the file is held.
#pragma once

#include <sys/stat.h>
#include <sys/vfs.h>
#include "buffer/file.hpp"

namespace sonde::buffer {

File* locked_file(int fd, Description*& description) noexcept;
/// Without a lock: false when nothing of the file behind a descriptor is held.
bool is_active(int fd) noexcept;
File* find_file(dev_t device, ino_t inode) noexcept;  ///< locked, or nullptr
/// These four with the table of files locked. The file of an open descriptor, locked; made when a rule covers it.
/// `only_read`: by this descriptor nothing can be written. `brief`: it will not be buffered (brief_lives.hpp).
File* known_or_new_file(int fd, const struct stat& got, settings::Rule* rule, const char* path, bool only_read,
                        bool brief) noexcept;
/// Whether a change at `now_ns` (since 1970) or later would show in the times of a file. Some file systems count whole
/// seconds (MooseFS, old NFS): of a file of this second, or by a clock that is not quite ours of one of the two before,
/// nobody can tell.
bool change_would_show(const struct stat& got, std::uint64_t now_ns) noexcept;
/// True when the rule wants the pages of a closed file to stay for the next open.
bool keep_for_reopening(File& file, int fd) noexcept;
/// Back to the state of a fresh object, and unlocked.
void unmake_file(File& file) noexcept;
void choose_descriptors(File& file) noexcept;
/// What the kernel says the size behind a descriptor is, or -1.
std::int64_t size_below(int fd) noexcept;
void refresh_size(File& file) noexcept;
/// FAT ends at 4 GiB and has no inodes that last; files of the kernel are no files.
bool file_system_allows(int fd) noexcept;
bool file_system_allows(int fd, struct statfs& about) noexcept;  ///< and what else was answered
/// Calls `visit(file)` for every known file with its lock held (or not at all, when it is not to be had in time).
void for_each_file(void (*visit)(File&), std::int64_t lock_limit_ns = -1) noexcept;

}  // namespace sonde::buffer
