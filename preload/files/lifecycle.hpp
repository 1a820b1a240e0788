// SPDX-License-Identifier: Apache-2.0
// The files that are known, from open() to the last close(). Unless said otherwise the lock of the file is held.
#pragma once

#include <sys/stat.h>
#include <sys/vfs.h>
#include "model/file.hpp"

namespace sonde::buffer {

/// These four with the table of files locked. The file of an open descriptor, locked; made when a rule covers it.
/// `only_read`: by this descriptor nothing can be written.
File* known_or_new_file(int fd, const struct stat& got, settings::Rule* rule, const char* path,
                        bool only_read) noexcept;
/// Whether a change at `now_ns` (since 1970) or later would show in the times of a file. Some file systems count whole
/// seconds (MooseFS, old NFS): of a file of this second, or by a clock that is not quite ours of one of the two before,
/// nobody can tell.
bool change_would_show(const struct stat& got, std::uint64_t now_ns) noexcept;
/// True when the rule wants the pages of a closed file to stay for the next open.
bool keep_for_reopening(File& file, int fd) noexcept;
/// Back to the state of a fresh object, and unlocked.
void unmake_file(File& file) noexcept;
/// FAT ends at 4 GiB and has no inodes that last; files of the kernel are no files.
bool file_system_allows(int fd, struct statfs& about) noexcept;
/// Nobody but the kernel of this node changes its files, so that the kernel's leases tell of everybody.
bool is_local_file_system(const struct statfs& about) noexcept;

}  // namespace sonde::buffer
