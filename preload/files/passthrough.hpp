// SPDX-License-Identifier: Apache-2.0
// Scope of a call that the buffer does not execute itself: buffering of its file is suspended.
#pragma once

#include "model/file.hpp"

namespace sonde::buffer {

/// While this lives, the kernel has the truth about the file: data, size, offsets. For all calls that we do not do
/// ourselves. Other threads' calls go to the kernel too.
class PassThrough {
 public:
    explicit PassThrough(int fd) noexcept;
    PassThrough(dev_t device, ino_t inode) noexcept;
    ~PassThrough();
    PassThrough(const PassThrough&) = delete;
    PassThrough& operator=(const PassThrough&) = delete;

 private:
    void enter(File* file) noexcept;
    File* file_ = nullptr;
    std::uint32_t generation_ = 0;
    int cancel_ = 0;  ///< a thread canceled during the call would leave the file suspended forever
};

}  // namespace sonde::buffer
