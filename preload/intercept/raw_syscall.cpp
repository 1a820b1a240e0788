// SPDX-License-Identifier: Apache-2.0
// syscall(): programs that use a call before libc has a function for it. Those on files go where the functions go.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace {

using namespace sonde;

template <class T>
T* pointer(long value) noexcept {
    return reinterpret_cast<T*>(value);
}

int number(long value) noexcept {
    return static_cast<int>(value);
}

std::size_t bytes(long value) noexcept {
    return static_cast<std::size_t>(value);
}

/// Reading and writing. False: not one of these.
bool transfer(long call, long a, long b, long c, long d, long f, long& result) noexcept {
    const int fd = number(a);
    switch (call) {
        case SYS_read:
            result = wrap_read(fd, pointer<void>(b), bytes(c));
            return true;
        case SYS_write:
            result = wrap_write(fd, pointer<void>(b), bytes(c));
            return true;
        case SYS_pread64:
            result = wrap_pread64(fd, pointer<void>(b), bytes(c), d);
            return true;
        case SYS_pwrite64:
            result = wrap_pwrite64(fd, pointer<void>(b), bytes(c), d);
            return true;
        case SYS_readv:
            result = wrap_readv(fd, pointer<iovec>(b), number(c));
            return true;
        case SYS_writev:
            result = wrap_writev(fd, pointer<iovec>(b), number(c));
            return true;
        case SYS_preadv:
            result = wrap_preadv64(fd, pointer<iovec>(b), number(c), d);
            return true;
        case SYS_pwritev:
            result = wrap_pwritev64(fd, pointer<iovec>(b), number(c), d);
            return true;
        case SYS_preadv2:
            result = wrap_preadv64v2(fd, pointer<iovec>(b), number(c), d, number(f));
            return true;
        case SYS_pwritev2:
            result = wrap_pwritev64v2(fd, pointer<iovec>(b), number(c), d, number(f));
            return true;
        case SYS_lseek:
            result = wrap_lseek64(fd, b, number(c));
            return true;
        default:
            return false;
    }
}

/// Opening, closing, duplicating, naming.
bool descriptors(long call, long a, long b, long c, long d, long e, long& result) noexcept {
    switch (call) {
        case SYS_openat:
            result = wrap_openat64(number(a), pointer<char>(b), number(c), static_cast<mode_t>(d));
            return true;
        case SYS_openat2:
            result = wrap_openat2(number(a), pointer<char>(b), pointer<void>(c), bytes(d));
            return true;
        case SYS_close:
            result = wrap_close(number(a));
            return true;
        case SYS_close_range:
            result = wrap_close_range(static_cast<unsigned>(a), static_cast<unsigned>(b), number(c));
            return true;
        case SYS_dup:
            result = wrap_dup(number(a));
            return true;
        case SYS_dup3:
            result = wrap_dup3(number(a), number(b), number(c));
            return true;
        case SYS_fcntl:
            result = wrap_fcntl64(number(a), number(b), c);
            return true;
        case SYS_ioctl:
            result = wrap_ioctl(number(a), static_cast<unsigned long>(b), c);
            return true;
        case SYS_flock:
            result = wrap_flock(number(a), number(b));
            return true;
        case SYS_renameat:
            result = wrap_renameat(number(a), pointer<char>(b), number(c), pointer<char>(d));
            return true;
        case SYS_renameat2:
            result = wrap_renameat2(number(a), pointer<char>(b), number(c), pointer<char>(d), static_cast<unsigned>(e));
            return true;
#if defined(__x86_64__)
        case SYS_open:
            result = wrap_open64(pointer<char>(a), number(b), static_cast<mode_t>(c));
            return true;
        case SYS_creat:
            result = wrap_creat64(pointer<char>(a), static_cast<mode_t>(b));
            return true;
        case SYS_dup2:
            result = wrap_dup2(number(a), number(b));
            return true;
        case SYS_rename:
            result = wrap_rename(pointer<char>(a), pointer<char>(b));
            return true;
#endif
        default:
            return false;
    }
}

/// Status, size, syncing, copying: by number, because the structures are the kernel's.
bool must_see(long call, long a, long b, long c, int& first, int& second) noexcept {
    first = second = -1;
    switch (call) {
        case SYS_fstat:
        case SYS_ftruncate:
        case SYS_fallocate:
        case SYS_fsync:
        case SYS_fdatasync:
        case SYS_sync_file_range:
        case SYS_fadvise64:
        case SYS_readahead:
            first = number(a);
            return true;
        case SYS_copy_file_range:
        case SYS_splice:
            first = number(a);
            second = number(c);
            return true;
        case SYS_sendfile:
            first = number(a);
            second = number(b);
            return true;
        default:
            return false;
    }
}

/// The file behind a path that the call names.
bool named(long call, long a, long b, int& dirfd, const char*& path) noexcept {
    dirfd = AT_FDCWD;
    path = pointer<char>(a);
    switch (call) {
        case SYS_statx:
        case SYS_newfstatat:
            dirfd = number(a);
            path = pointer<char>(b);
            return true;
#if defined(__x86_64__)
        case SYS_stat:
        case SYS_lstat:
#endif
        case SYS_truncate:
            return true;
        default:
            return false;
    }
}

/// Calls after which nothing here is as it was.
void ends_or_splits(long call, long a) noexcept {
    switch (call) {
        case SYS_io_uring_setup:
        case SYS_io_uring_enter:
        case SYS_io_setup:
        case SYS_io_submit:
            buffer::disable_buffering("the program uses I/O rings, which work without calls that could be seen");
            break;
        case SYS_exit_group:
            intercept::at_end();
            break;
        case SYS_utimensat:
        case SYS_fchmod:
        case SYS_fchmodat:
        case SYS_fchown:
        case SYS_fchownat:
        case SYS_fsetxattr:
        case SYS_setxattr:
            if (buffer::any()) {
                buffer::flush_all();  // what is written later would change it once more
            }
            break;
        case SYS_exit:
        case SYS_unshare:
        case SYS_setns:
            intercept::before_separation();
            break;
        case SYS_seccomp:
            intercept::before_filter();
            break;
        case SYS_prctl:
            if (a == PR_SET_SECCOMP) {
                intercept::before_filter();
            }
            break;
        case SYS_execve:
        case SYS_execveat:
            buffer::before_child(buffer::Child::Vanishing);
            intercept::before_exec();
            break;
        case SYS_clone: {
            constexpr long thread = 0x00010000;
            if ((a & thread) == 0) {
                buffer::before_child(buffer::Child::Copy);
            }
            break;
        }
#if defined(__x86_64__)
        case SYS_fork:
        case SYS_vfork:
#endif
        case SYS_clone3:
            buffer::before_child(buffer::Child::Copy);
            break;
        default:
            break;
    }
}

}  // namespace

long wrap_syscall(long call, long a, long b, long c, long d, long e, long f) {
    if (buffer::table == nullptr && !trace::on()) {
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    long result = 0;
    if (transfer(call, a, b, c, d, f, result) || descriptors(call, a, b, c, d, e, result)) {
        return result;
    }
    if (call == SYS_mmap) {
        // Not through libc's mmap(): libraries of MPI overwrite its beginning with a jump to code that ends here.
        intercept::before_map(number(e), number(c), number(d));
        const std::uint64_t began = trace::on() ? system::ticks() : 0;
        result = NEXT(syscall)(call, a, b, c, d, e, f);
        if ((d & MAP_ANONYMOUS) == 0 && trace::watched(number(e))) {
            trace::called(number(e), trace::Kind::Map, began);
        }
        return result;
    }
    int first = -1;
    int second = -1;
    if (must_see(call, a, b, c, first, second)) {
        const buffer::PassThrough one(first);
        const buffer::PassThrough other(second);
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    int dirfd = AT_FDCWD;
    const char* path = nullptr;
    if (named(call, a, b, dirfd, path)) {
        const intercept::PassThroughPath around(dirfd, path, true);
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    ends_or_splits(call, a);
    return NEXT(syscall)(call, a, b, c, d, e, f);
}
