// SPDX-License-Identifier: Apache-2.0
// Handing delayed data to the kernel (not to the disk).
#pragma once

#include <sys/types.h>

namespace sonde::buffer {

/// fsync and its kin: hands everything to the kernel; 0 or the error to report. `quiet`: the rule says ignoreflush.
int flush_descriptor(int fd, bool& quiet) noexcept;
/// Dirty data of one file, or of all files, to the kernel (not to the disk). Errors wait for who must be told.
void flush_to_kernel(int fd) noexcept;
/// The kernel knows the offset of the descriptor, for calls that count from there.
void set_kernel_offset(int fd) noexcept;
void flush_inode(dev_t device, ino_t inode) noexcept;
void flush_all() noexcept;
/// The next write to each file looks at the free space again, because the program has allocated some.
void require_space_check() noexcept;
/// True when the file of this descriptor holds data that the kernel does not have.
bool has_dirty_pages(int fd) noexcept;
/// False: no file has any, so that calls on paths need not ask which file they mean.
bool has_any_dirty_file() noexcept;
/// True when the library has an entry for the file of this inode, buffered or not, dirty or not.
bool is_registered_inode(dev_t device, ino_t inode) noexcept;

}  // namespace sonde::buffer
