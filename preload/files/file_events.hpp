// SPDX-License-Identifier: Apache-2.0
// What the program does to an open file that ends its buffering, or that makes others' changes visible.
#pragma once

#include <sys/types.h>

namespace sonde::buffer {

/// Buffering of this file ends for good; the reason is for the report.
void release_file_of_descriptor(int fd, const char* reason) noexcept;
void release_file_of_inode(dev_t device, ino_t inode, const char* reason) noexcept;
/// The program locks a part of the file for its process.
void note_lock_of_file(int fd) noexcept;
/// The program has got a lock on the file or a part of it, and must find what others wrote before.
void read_again_after_lock(int fd) noexcept;

}  // namespace sonde::buffer
