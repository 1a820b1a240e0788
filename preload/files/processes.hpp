// SPDX-License-Identifier: Apache-2.0
// What happens to all files when processes begin and end.
#pragma once

namespace sonde::buffer {

enum class Child {
    Copy,       ///< fork: a second process shares every offset from now on
    Program,    ///< posix_spawn and the like without file actions: what is close-on-exec stays ours
    Vanishing,  ///< exec: the process image is replaced when it succeeds
};
/// Flushes all, gives offsets to the kernel, lets go of what the child will share.
void before_child(Child kind) noexcept;
/// Before and after fork(): between these two no other thread opens or closes. `child` is true in the new process.
void prepare_fork_of_files() noexcept;
void resume_after_fork(bool child) noexcept;
/// Releases all files and buffers no file from now on, since an I/O ring of the program may access files unnoticed.
void disable_buffering(const char* reason) noexcept;
/// The process is about to end: flush, and write through from now on. Does not wait long for locks that others hold.
void finish() noexcept;
/// setrlimit(RLIMIT_FSIZE) may have changed.
void read_limits() noexcept;

}  // namespace sonde::buffer
