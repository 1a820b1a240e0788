// SPDX-License-Identifier: Apache-2.0
// Calls that end the buffering of an open file, or that must see changes of other processes.
#pragma once

#include <sys/types.h>

namespace sonde::buffer {

/// Ends the buffering of this file until its last close; `reason` is for the report.
void release_file_of_descriptor(int fd, const char* reason) noexcept;
void release_file_of_inode(dev_t device, ino_t inode, const char* reason) noexcept;
/// Must be called before the program locks a part of the file: from then on the library closes no descriptor of this
/// file, because each close() would release the program's locks.
void record_file_lock(int fd) noexcept;
/// Must be called after the program got a lock on the file, so that it reads what other processes wrote before.
void read_again_after_lock(int fd) noexcept;

}  // namespace sonde::buffer
