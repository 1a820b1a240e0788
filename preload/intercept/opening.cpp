// SPDX-License-Identifier: Apache-2.0
// Intercepts calls that return a descriptor of a file.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"
#include "intercept/mpi_io.hpp"

#include <fcntl.h>
#include <new>

namespace sonde::intercept {

bool find_inode_of_path(int dirfd, const char* path, bool follow_stream, dev_t& device, ino_t& inode) noexcept {
    if (path == nullptr || !buffer::has_registered_descriptors()) {
        return false;
    }
    struct stat status {};
    const long flags = AT_NO_AUTOMOUNT | AT_EMPTY_PATH | (follow_stream ? 0 : AT_SYMLINK_NOFOLLOW);
    if (raw::call(SYS_newfstatat, dirfd, raw::pointer_to_number(path), raw::pointer_to_number(&status), flags) != 0 ||
        !S_ISREG(status.st_mode)) {
        return false;
    }
    device = status.st_dev;
    inode = status.st_ino;
    return true;
}

PassThroughPath::PassThroughPath(int dirfd, const char* path, bool follow_stream) noexcept {
    dev_t device = 0;
    ino_t inode = 0;
    if (find_inode_of_path(dirfd, path, follow_stream, device, inode)) {
        new (storage_) buffer::PassThrough(device, inode);
        is_constructed_ = true;
    }
}

PassThroughPath::~PassThroughPath() {
    if (is_constructed_) {
        reinterpret_cast<buffer::PassThrough*>(storage_)->~PassThrough();
    }
}

int adopt_reopened_file(int fd, int flags, const char* path) noexcept {
    if (fd >= 0 && !system::Critical::is_in_library() && !is_in_vfork_child() && !is_left_to_mpi_io(fd, flags, path)) {
        const int saved_errno = errno;
        buffer::adopt_descriptor({.fd = fd, .flags = flags, .path = path});
        errno = saved_errno;
    }
    return fd;
}

int consider_opened(int fd, int flags, const char* path, std::uint64_t began) noexcept {
    if (fd < 0 || system::Critical::is_in_library() || is_in_vfork_child()) {
        return fd;
    }
    if (trace::is_tracing()) [[unlikely]] {
        trace::record_open(fd, flags, path, began);
        return fd;
    }
    const int saved_errno = errno;
    if (!is_left_to_mpi_io(fd, flags, path)) [[likely]] {
        buffer::consider_opened_descriptor(fd, flags, path);
    }
    errno = saved_errno;
    return fd;
}

}  // namespace sonde::intercept

namespace {

using namespace sonde;

template <class Real>
int open_at(int dirfd, Path path, int flags, Real real) {
    const std::uint64_t began = trace::is_tracing() ? system::ticks() : 0;
    if (intercept::opens_buffered_file(path, flags)) [[unlikely]] {
        // What was written before must not arrive after the file was emptied, and a lease must be given up first.
        const intercept::PassThroughPath around(dirfd, path, true);
        const int fd = intercept::retry_with_released_descriptors(real);
        return fd >= 0 && around.is_known_file() ? intercept::adopt_reopened_file(fd, flags, path)
                                                 : intercept::consider_opened(fd, flags, path, began);
    }
    const int fd = intercept::retry_with_released_descriptors(real);
    if (fd < 0 && errno == EWOULDBLOCK && buffer::has_registered_descriptors()) [[unlikely]] {
        // O_NONBLOCK, and perhaps our own lease on a file of which this is another name. It may be given up already.
        const intercept::PassThroughPath around(dirfd, path, true);
        if (around.is_known_file()) {
            return intercept::adopt_reopened_file(real(), flags, path);
        }
        errno = EWOULDBLOCK;
    }
    return intercept::consider_opened(fd, flags, path, began);
}

/// First members of the kernel's struct open_how, which older headers lack.
struct OpenHow {
    std::uint64_t flags, mode, resolve;
};

constexpr int temporary_file_flags = O_RDWR | O_CREAT | O_EXCL;

template <class Real>
int make_temporary(const char* path, int flags, Real real) {
    const std::uint64_t began = trace::is_tracing() ? system::ticks() : 0;
    const int fd = real();
    return intercept::consider_opened(fd, flags | temporary_file_flags, path,
                                      began);  // now the path has its final name
}

}  // namespace

int wrap_open(Path path, int flags, mode_t mode) {
    return open_at(AT_FDCWD, path, flags, [=] { return NEXT(open)(path, flags, mode); });
}
int wrap_open64(Path path, int flags, mode_t mode) {
    return open_at(AT_FDCWD, path, flags, [=] { return NEXT(open64)(path, flags, mode); });
}
int wrap___open(Path path, int flags, mode_t mode) {
    return open_at(AT_FDCWD, path, flags, [=] { return NEXT(__open)(path, flags, mode); });
}
int wrap___open64(Path path, int flags, mode_t mode) {
    return open_at(AT_FDCWD, path, flags, [=] { return NEXT(__open64)(path, flags, mode); });
}
int wrap___open_2(Path path, int flags) {
    return open_at(AT_FDCWD, path, flags, [=] { return NEXT(__open_2)(path, flags); });
}
int wrap___open64_2(Path path, int flags) {
    return open_at(AT_FDCWD, path, flags, [=] { return NEXT(__open64_2)(path, flags); });
}
int wrap_openat(int dirfd, Path path, int flags, mode_t mode) {
    return open_at(dirfd, path, flags, [=] { return NEXT(openat)(dirfd, path, flags, mode); });
}
int wrap_openat64(int dirfd, Path path, int flags, mode_t mode) {
    return open_at(dirfd, path, flags, [=] { return NEXT(openat64)(dirfd, path, flags, mode); });
}
int wrap___openat_2(int dirfd, Path path, int flags) {
    return open_at(dirfd, path, flags, [=] { return NEXT(__openat_2)(dirfd, path, flags); });
}
int wrap___openat64_2(int dirfd, Path path, int flags) {
    return open_at(dirfd, path, flags, [=] { return NEXT(__openat64_2)(dirfd, path, flags); });
}
int wrap_openat2(int dirfd, Path path, const void* how, size_t bytes) {
    const auto* requested = static_cast<const OpenHow*>(how);
    const int flags = requested != nullptr && bytes >= sizeof(*requested) ? static_cast<int>(requested->flags) : O_PATH;
    return open_at(dirfd, path, flags, [=] { return NEXT(openat2)(dirfd, path, how, bytes); });
}
int wrap_creat(Path path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, [=] { return NEXT(creat)(path, mode); });
}
int wrap_creat64(Path path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, [=] { return NEXT(creat64)(path, mode); });
}
int wrap_open_by_handle_at(int mount, struct file_handle* handle, int flags) {
    const std::uint64_t began = trace::is_tracing() ? system::ticks() : 0;
    return intercept::consider_opened(NEXT(open_by_handle_at)(mount, handle, flags), flags, "", began);
}
int wrap_mkstemp(char* path) {
    return make_temporary(path, 0, [=] { return NEXT(mkstemp)(path); });
}
int wrap_mkstemp64(char* path) {
    return make_temporary(path, 0, [=] { return NEXT(mkstemp64)(path); });
}
int wrap_mkostemp(char* path, int flags) {
    return make_temporary(path, flags, [=] { return NEXT(mkostemp)(path, flags); });
}
int wrap_mkostemp64(char* path, int flags) {
    return make_temporary(path, flags, [=] { return NEXT(mkostemp64)(path, flags); });
}
int wrap_mkstemps(char* path, int suffix) {
    return make_temporary(path, 0, [=] { return NEXT(mkstemps)(path, suffix); });
}
int wrap_mkstemps64(char* path, int suffix) {
    return make_temporary(path, 0, [=] { return NEXT(mkstemps64)(path, suffix); });
}
int wrap_mkostemps(char* path, int suffix, int flags) {
    return make_temporary(path, flags, [=] { return NEXT(mkostemps)(path, suffix, flags); });
}
int wrap_mkostemps64(char* path, int suffix, int flags) {
    return make_temporary(path, flags, [=] { return NEXT(mkostemps64)(path, suffix, flags); });
}
