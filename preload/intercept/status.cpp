// SPDX-License-Identifier: Apache-2.0
// Intercepts calls on status, size and names of files. Delayed data is flushed before the kernel answers.
#include "intercept/errors.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>

namespace {

using namespace sonde;
using trace::Kind;

/// Status of a descriptor.
template <class Real>
int read_status_of_descriptor(int fd, Real real) {
    if (intercept::is_library_descriptor(fd)) [[unlikely]] {
        errno = EBADF;  // to the program it is not open
        return -1;
    }
    if (buffer::has_any_dirty_file()) [[unlikely]] {
        buffer::consider_unseen_descriptor(fd);
        if (buffer::has_dirty_pages(fd)) {
            buffer::flush_to_kernel(fd);
        }
    }
    if (trace::is_traced_descriptor(fd)) [[unlikely]] {
        const std::uint64_t began = system::ticks();
        const int done = real();
        trace::record_call(fd, Kind::Stat, began);
        return done;
    }
    return real();
}

/// Writes the pages of the file at a path. Not inlined: see the top of transfer.cpp.
__attribute__((noinline)) void flush_file_at_path(int dirfd, Path path, bool follow_stream) noexcept {
    dev_t device = 0;
    ino_t inode = 0;
    if (intercept::find_inode_of_path(dirfd, path, follow_stream, device, inode)) {
        buffer::flush_inode(device, inode);
    }
}

struct Identity {
    dev_t device;
    ino_t inode;
};

Identity make_identity(const struct stat& status) noexcept {
    return {status.st_dev, status.st_ino};
}

Identity make_identity(const struct statx& status) noexcept {
    return {makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
}

/// Flushes the file that a call on a path has identified. True when the library buffers it: then the call is repeated.
/// Its first result may be old even if nothing is dirty now, because a worker may have written the data in between.
__attribute__((noinline)) bool flush_if_registered(const Identity& file) noexcept {
    if (!buffer::is_registered_inode(file.device, file.inode)) {
        return false;
    }
    buffer::flush_inode(file.device, file.inode);
    return true;
}

/// Status of a path.
template <class Status, class Real>
int read_status_after_flush(const Status* status, Real real) {
    if (trace::is_tracing()) [[unlikely]] {
        const std::uint64_t began = system::ticks();
        const int done = real();
        trace::record_named_call(Kind::Stat, began);
        return done;
    }
    if (!buffer::has_any_dirty_file()) [[likely]] {
        return real();
    }
    const int done = real();
    return done == 0 && flush_if_registered(make_identity(*status)) ? real() : done;
}

bool follows_links(int flags) noexcept {
    return (flags & AT_SYMLINK_NOFOLLOW) == 0;
}

/// Handles a call that changes the size or space of the file behind a descriptor.
template <class Real>
int resize_file(int fd, Real real) {
    if (trace::is_traced_descriptor(fd)) [[unlikely]] {
        const std::uint64_t began = system::ticks();
        const int done = real();
        trace::record_call(fd, Kind::Truncate, began);
        return done;
    }
    const buffer::PassThrough around(fd);
    return real();
}

/// Flushes first, because delayed data may need the space that the program allocates.
template <class Real>
int allocate_space(int fd, Real real) {
    if (buffer::has_any_dirty_file()) {
        buffer::flush_all();
    }
    const int done = resize_file(fd, real);
    const int error = errno;
    buffer::require_space_check();
    errno = error;
    return done;
}

template <class Real>
int resize_file_at_path(Path path, Real real) {
    const intercept::PassThroughPath around(AT_FDCWD, path, true);
    return real();
}

/// A call on names only. `from` must have its data before its new name shows: programs write a file and then rename it
/// over the old one so that there is always a whole one.
template <class Real>
int flush_before_rename(int dirfd, Path from, Real real) {
    if (from != nullptr && buffer::has_any_dirty_file()) [[unlikely]] {
        flush_file_at_path(dirfd, from, false);
    }
    if (trace::is_tracing()) [[unlikely]] {
        const std::uint64_t began = system::ticks();
        const int done = real();
        trace::record_named_call(Kind::Name, began);
        return done;
    }
    return real();
}

/// Flushes before a call that sets times, setuid bits or capabilities, which a delayed write would change again.
template <class Real>
int flush_before_attribute_change(int fd, Real real) {
    if (buffer::is_watched_descriptor(fd)) [[unlikely]] {
        buffer::flush_to_kernel(fd);
    }
    return real();
}

template <class Real>
int flush_path_before_attribute_change(int dirfd, Path path, bool follow_stream, Real real) {
    if (path == nullptr) {
        return flush_before_attribute_change(dirfd, real);
    }
    if (buffer::has_any_dirty_file()) [[unlikely]] {
        flush_file_at_path(dirfd, path, follow_stream);
    }
    return real();
}

}  // namespace

int wrap_stat(Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(stat)(path, status); });
}
int wrap_stat64(Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(stat64)(path, status); });
}
int wrap_lstat(Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(lstat)(path, status); });
}
int wrap_lstat64(Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(lstat64)(path, status); });
}
int wrap_fstat(int fd, struct stat* status) {
    return read_status_of_descriptor(fd, [=] { return NEXT(fstat)(fd, status); });
}
int wrap_fstat64(int fd, struct stat* status) {
    return read_status_of_descriptor(fd, [=] { return NEXT(fstat64)(fd, status); });
}
int wrap_fstatat(int dirfd, Path path, struct stat* status, int flags) {
    return read_status_after_flush(status, [=] { return NEXT(fstatat)(dirfd, path, status, flags); });
}
int wrap_fstatat64(int dirfd, Path path, struct stat* status, int flags) {
    return read_status_after_flush(status, [=] { return NEXT(fstatat64)(dirfd, path, status, flags); });
}
int wrap___xstat(int version, Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(__xstat)(version, path, status); });
}
int wrap___xstat64(int version, Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(__xstat64)(version, path, status); });
}
int wrap___lxstat(int version, Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(__lxstat)(version, path, status); });
}
int wrap___lxstat64(int version, Path path, struct stat* status) {
    return read_status_after_flush(status, [=] { return NEXT(__lxstat64)(version, path, status); });
}
int wrap___fxstat(int version, int fd, struct stat* status) {
    return read_status_of_descriptor(fd, [=] { return NEXT(__fxstat)(version, fd, status); });
}
int wrap___fxstat64(int version, int fd, struct stat* status) {
    return read_status_of_descriptor(fd, [=] { return NEXT(__fxstat64)(version, fd, status); });
}
int wrap___fxstatat(int version, int dirfd, Path path, struct stat* status, int flags) {
    return read_status_after_flush(status, [=] { return NEXT(__fxstatat)(version, dirfd, path, status, flags); });
}
int wrap___fxstatat64(int version, int dirfd, Path path, struct stat* status, int flags) {
    return read_status_after_flush(status, [=] { return NEXT(__fxstatat64)(version, dirfd, path, status, flags); });
}
int wrap_statx(int dirfd, Path path, int flags, unsigned mask, struct statx* status) {
    return read_status_after_flush(status, [=] { return NEXT(statx)(dirfd, path, flags, mask, status); });
}
int wrap_truncate(Path path, off64_t bytes) {
    return resize_file_at_path(path, [=] { return NEXT(truncate)(path, bytes); });
}
int wrap_truncate64(Path path, off64_t bytes) {
    return resize_file_at_path(path, [=] { return NEXT(truncate64)(path, bytes); });
}
int wrap_ftruncate(int fd, off64_t bytes) {
    return resize_file(fd, [=] { return NEXT(ftruncate)(fd, bytes); });
}
int wrap_ftruncate64(int fd, off64_t bytes) {
    return resize_file(fd, [=] { return NEXT(ftruncate64)(fd, bytes); });
}
int wrap_fallocate(int fd, int mode, off64_t offset, off64_t bytes) {
    return allocate_space(fd, [=] { return NEXT(fallocate)(fd, mode, offset, bytes); });
}
int wrap_fallocate64(int fd, int mode, off64_t offset, off64_t bytes) {
    return allocate_space(fd, [=] { return NEXT(fallocate64)(fd, mode, offset, bytes); });
}
int wrap_posix_fallocate(int fd, off64_t offset, off64_t bytes) {
    return allocate_space(fd, [=] { return NEXT(posix_fallocate)(fd, offset, bytes); });
}
int wrap_posix_fallocate64(int fd, off64_t offset, off64_t bytes) {
    return allocate_space(fd, [=] { return NEXT(posix_fallocate64)(fd, offset, bytes); });
}
int wrap_unlink(Path path) {
    return flush_before_rename(AT_FDCWD, nullptr, [=] { return NEXT(unlink)(path); });
}
int wrap_unlinkat(int dirfd, Path path, int flags) {
    return flush_before_rename(dirfd, nullptr, [=] { return NEXT(unlinkat)(dirfd, path, flags); });
}
int wrap_remove(Path path) {
    return flush_before_rename(AT_FDCWD, nullptr, [=] { return NEXT(remove)(path); });
}
int wrap_rename(Path from, Path to) {
    return flush_before_rename(AT_FDCWD, from, [=] { return NEXT(rename)(from, to); });
}
int wrap_renameat(int dirfd, Path from, int to_at, Path to) {
    return flush_before_rename(dirfd, from, [=] { return NEXT(renameat)(dirfd, from, to_at, to); });
}
int wrap_renameat2(int dirfd, Path from, int to_at, Path to, unsigned flags) {
    return flush_before_rename(dirfd, from, [=] { return NEXT(renameat2)(dirfd, from, to_at, to, flags); });
}
int wrap_link(Path from, Path to) {
    return flush_before_rename(AT_FDCWD, from, [=] { return NEXT(link)(from, to); });
}
int wrap_linkat(int dirfd, Path from, int to_at, Path to, int flags) {
    return flush_before_rename(dirfd, from, [=] { return NEXT(linkat)(dirfd, from, to_at, to, flags); });
}
int wrap_futimens(int fd, const struct timespec* times) {
    return flush_before_attribute_change(fd, [=] { return NEXT(futimens)(fd, times); });
}
int wrap_utimensat(int dirfd, Path path, const struct timespec* times, int flags) {
    return flush_path_before_attribute_change(dirfd, path, follows_links(flags),
                                              [=] { return NEXT(utimensat)(dirfd, path, times, flags); });
}
int wrap_utimes(Path path, const struct timeval* times) {
    return flush_path_before_attribute_change(AT_FDCWD, path, true, [=] { return NEXT(utimes)(path, times); });
}
int wrap_lutimes(Path path, const struct timeval* times) {
    return flush_path_before_attribute_change(AT_FDCWD, path, false, [=] { return NEXT(lutimes)(path, times); });
}
int wrap_futimes(int fd, const struct timeval* times) {
    return flush_before_attribute_change(fd, [=] { return NEXT(futimes)(fd, times); });
}
int wrap_futimesat(int dirfd, Path path, const struct timeval* times) {
    return flush_path_before_attribute_change(dirfd, path, true, [=] { return NEXT(futimesat)(dirfd, path, times); });
}
int wrap_utime(Path path, const struct utimbuf* times) {
    return flush_path_before_attribute_change(AT_FDCWD, path, true, [=] { return NEXT(utime)(path, times); });
}
int wrap_fchmod(int fd, mode_t mode) {
    return flush_before_attribute_change(fd, [=] { return NEXT(fchmod)(fd, mode); });
}
int wrap_chmod(Path path, mode_t mode) {
    return flush_path_before_attribute_change(AT_FDCWD, path, true, [=] { return NEXT(chmod)(path, mode); });
}
int wrap_fchmodat(int dirfd, Path path, mode_t mode, int flags) {
    return flush_path_before_attribute_change(dirfd, path, follows_links(flags),
                                              [=] { return NEXT(fchmodat)(dirfd, path, mode, flags); });
}
int wrap_fchown(int fd, uid_t user, gid_t group) {
    return flush_before_attribute_change(fd, [=] { return NEXT(fchown)(fd, user, group); });
}
int wrap_chown(Path path, uid_t user, gid_t group) {
    return flush_path_before_attribute_change(AT_FDCWD, path, true, [=] { return NEXT(chown)(path, user, group); });
}
int wrap_lchown(Path path, uid_t user, gid_t group) {
    return flush_path_before_attribute_change(AT_FDCWD, path, false, [=] { return NEXT(lchown)(path, user, group); });
}
int wrap_fchownat(int dirfd, Path path, uid_t user, gid_t group, int flags) {
    return flush_path_before_attribute_change(dirfd, path, follows_links(flags),
                                              [=] { return NEXT(fchownat)(dirfd, path, user, group, flags); });
}
int wrap_fsetxattr(int fd, Path name, const void* value, size_t bytes, int flags) {
    return flush_before_attribute_change(fd, [=] { return NEXT(fsetxattr)(fd, name, value, bytes, flags); });
}
int wrap_setxattr(Path path, Path name, const void* value, size_t bytes, int flags) {
    return flush_path_before_attribute_change(AT_FDCWD, path, true,
                                              [=] { return NEXT(setxattr)(path, name, value, bytes, flags); });
}
int wrap_lsetxattr(Path path, Path name, const void* value, size_t bytes, int flags) {
    return flush_path_before_attribute_change(AT_FDCWD, path, false,
                                              [=] { return NEXT(lsetxattr)(path, name, value, bytes, flags); });
}
