// SPDX-License-Identifier: Apache-2.0
// Prepares all files for fork(), exec() and the end of the process.
#pragma once

namespace sonde::buffer {

enum class ChildKind {
    Copy,       ///< fork: a second process shares every offset from now on
    Program,    ///< posix_spawn and the like without file actions: what is close-on-exec stays ours
    Vanishing,  ///< exec: the process image is replaced when it succeeds
};
/// Flushes all files, sets the kernel's offsets, and releases files that the child process will share.
void prepare_child_process(ChildKind kind) noexcept;
/// Called before and after fork(): no other thread opens or closes files in between. `child` is true in the new
/// process.
void prepare_fork_of_files() noexcept;
void resume_after_fork(bool child) noexcept;
/// Releases all files and buffers no file from now on, since an I/O ring of the program may access files unnoticed.
void disable_buffering(const char* reason) noexcept;
/// Flushes all files at the end of the process; later calls pass through. Waits only briefly for locks.
void finish_buffering() noexcept;
/// setrlimit(RLIMIT_FSIZE) may have changed.
void read_file_size_limit() noexcept;

}  // namespace sonde::buffer
