// SPDX-License-Identifier: Apache-2.0
// Writes delayed data to the kernel (not to the disk).
#pragma once

#include <sys/types.h>

namespace sonde::buffer {

/// Hands everything to the kernel before fsync and its kin. Returns 0 or the error to report.
int flush_descriptor(int fd) noexcept;
/// Writes the dirty data of one file to the kernel (not to the disk). Errors are stored for a later call to report.
void flush_to_kernel(int fd) noexcept;
/// Sets the kernel's offset of the descriptor, for calls that use it.
void set_kernel_offset(int fd) noexcept;
void flush_inode(dev_t device, ino_t inode) noexcept;
void flush_all() noexcept;
/// Makes the next write to each file check the free space again, because the program has allocated some.
void require_space_check() noexcept;
/// Returns whether the file of this descriptor has data that the kernel does not have.
bool has_dirty_pages(int fd) noexcept;
/// False: no file has any, so that calls on paths need not ask which file they mean.
bool has_any_dirty_file() noexcept;
/// Returns whether the file of this inode is registered, buffered or not.
bool is_registered_inode(dev_t device, ino_t inode) noexcept;

}  // namespace sonde::buffer
