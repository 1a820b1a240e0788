// SPDX-License-Identifier: Apache-2.0
// Converts results of the buffer to results of libc: return value and errno.
#pragma once

#include "files/buffer.hpp"
#include "intercept/borrowed_memory.hpp"
#include "intercept/next.hpp"
#include "trace/trace.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <cerrno>

namespace sonde::intercept {

inline ssize_t to_libc_result(ssize_t value) noexcept {
    if (value < 0) {
        errno = static_cast<int>(-value);
        return -1;
    }
    return value;
}

/// What a call returns that the kernel answered with `done`, when writing what had been delayed gave `error` (0: none).
inline int combine_flush_result(int done, int error) noexcept {
    if (error != 0 && done == 0) {
        errno = error;
        return -1;
    }
    return done;
}

/// Finds device and inode of a path for calls that name it, if any file is registered.
bool find_inode_of_path(int dirfd, const char* path, bool follow_stream, dev_t& device, ino_t& inode) noexcept;

/// A call that makes a descriptor: the program may use all numbers that it has, also those that we took.
template <class Real>
int retry_with_released_descriptors(Real real) noexcept(noexcept(real())) {
    int fd = real();
    while (fd < 0 && errno == EMFILE && buffer::table != nullptr && !system::Critical::is_in_library() &&
           !is_in_vfork_child() && buffer::release_own_descriptor()) {
        fd = real();
    }
    return fd;
}

/// Like buffer::PassThrough, for the file behind a path.
class PassThroughPath {
 public:
    PassThroughPath(int dirfd, const char* path, bool follow_stream) noexcept;
    ~PassThroughPath();
    PassThroughPath(const PassThroughPath&) = delete;
    PassThroughPath& operator=(const PassThroughPath&) = delete;
    /// The path leads to a file that is known.
    bool is_known_file() const noexcept { return is_constructed_; }

 private:
    alignas(buffer::PassThrough) unsigned char storage_[sizeof(buffer::PassThrough)];
    bool is_constructed_ = false;
};

/// Returns whether the descriptor belongs to the library (reports): the program must neither close nor see it.
inline bool is_library_descriptor(int fd) noexcept {
    return fd >= buffer::lowest_own_descriptor.load(std::memory_order_relaxed) && fd > 2 &&
           buffer::is_own_descriptor(fd);
}
/// Moves a descriptor of the library to another number, because the program needs this one.
void move_descriptor_off_number(int fd) noexcept;

/// Returns whether the path may be that of a registered file; called before it is opened.
inline bool opens_buffered_file(const char* path, int flags) noexcept {
    return buffer::may_break_own_lease(path) ||
           ((flags & O_TRUNC) != 0 && buffer::unguarded_files.load(std::memory_order_relaxed) != 0);
}
/// Registers a new descriptor of a file that is registered already.
int adopt_reopened_file(int fd, int flags, const char* path) noexcept;
/// Considers a new descriptor of a path after any call that returned one.
int consider_opened(int fd, int flags, const char* path, std::uint64_t began) noexcept;

/// Memory maps are accessed without a call, so a mapped file is released.
void prepare_mapping(int fd, int protection, int flags) noexcept;

}  // namespace sonde::intercept
