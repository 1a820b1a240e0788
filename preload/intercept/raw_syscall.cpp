// SPDX-License-Identifier: Apache-2.0
// syscall(): programs that use a call before libc has a function for it. Those on files go where the functions go.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <type_traits>

namespace {

using namespace sonde;

/// An argument of a system call, as the type that the function of libc takes.
struct Argument {
    long value;
    template <class T>
    operator T() const noexcept {  // NOLINT(google-explicit-constructor)
        if constexpr (std::is_pointer_v<T>) {
            return reinterpret_cast<T>(value);
        } else {
            return static_cast<T>(value);
        }
    }
};

/// Stores the result of a call that was made. Returns true.
bool finish_call(long& result, long value) noexcept {
    result = value;
    return true;
}

/// Executes a read or write. Returns false for other system calls.
bool dispatch_transfer_call(long call, Argument a, Argument b, Argument c, Argument d, Argument f,
                            long& result) noexcept {
    const int fd = a;
    switch (call) {
        case SYS_read:
            return finish_call(result, wrap_read(fd, b, c));
        case SYS_write:
            return finish_call(result, wrap_write(fd, b, c));
        case SYS_pread64:
            return finish_call(result, wrap_pread64(fd, b, c, d));
        case SYS_pwrite64:
            return finish_call(result, wrap_pwrite64(fd, b, c, d));
        case SYS_readv:
            return finish_call(result, wrap_readv(fd, b, c));
        case SYS_writev:
            return finish_call(result, wrap_writev(fd, b, c));
        case SYS_preadv:
            return finish_call(result, wrap_preadv64(fd, b, c, d));
        case SYS_pwritev:
            return finish_call(result, wrap_pwritev64(fd, b, c, d));
        case SYS_preadv2:
            return finish_call(result, wrap_preadv64v2(fd, b, c, d, f));
        case SYS_pwritev2:
            return finish_call(result, wrap_pwritev64v2(fd, b, c, d, f));
        case SYS_lseek:
            return finish_call(result, wrap_lseek64(fd, b, c));
        default:
            return false;
    }
}

/// Opening, closing, duplicating, naming.
bool dispatch_descriptor_call(long call, Argument a, Argument b, Argument c, Argument d, Argument e,
                              long& result) noexcept {
    switch (call) {
        case SYS_openat:
            return finish_call(result, wrap_openat64(a, b, c, d));
        case SYS_openat2:
            return finish_call(result, wrap_openat2(a, b, c, d));
        case SYS_close:
            return finish_call(result, wrap_close(a));
        case SYS_close_range:
            return finish_call(result, wrap_close_range(a, b, c));
        case SYS_dup:
            return finish_call(result, wrap_dup(a));
        case SYS_dup3:
            return finish_call(result, wrap_dup3(a, b, c));
        case SYS_fcntl:
            return finish_call(result, wrap_fcntl64(a, b, c));
        case SYS_ioctl:
            return finish_call(result, wrap_ioctl(a, b, c));
        case SYS_flock:
            return finish_call(result, wrap_flock(a, b));
        case SYS_renameat:
            return finish_call(result, wrap_renameat(a, b, c, d));
        case SYS_renameat2:
            return finish_call(result, wrap_renameat2(a, b, c, d, e));
#if defined(__x86_64__)
        case SYS_open:
            return finish_call(result, wrap_open64(a, b, c));
        case SYS_creat:
            return finish_call(result, wrap_creat64(a, b));
        case SYS_dup2:
            return finish_call(result, wrap_dup2(a, b));
        case SYS_rename:
            return finish_call(result, wrap_rename(a, b));
#endif
        default:
            return false;
    }
}

/// Finds the descriptors that must be flushed before a system call on status, size, syncing or copying.
bool find_descriptors_to_flush(long call, Argument a, Argument b, Argument c, int& first, int& second) noexcept {
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
            first = static_cast<int>(a);
            return true;
        case SYS_copy_file_range:
        case SYS_splice:
            first = static_cast<int>(a);
            second = static_cast<int>(c);
            return true;
        case SYS_sendfile:
            first = static_cast<int>(a);
            second = static_cast<int>(b);
            return true;
        default:
            return false;
    }
}

/// Finds the path that a system call names.
bool find_named_path(long call, Argument a, Argument b, int& dirfd, const char*& path) noexcept {
    dirfd = AT_FDCWD;
    path = static_cast<const char*>(a);
    switch (call) {
        case SYS_statx:
        case SYS_newfstatat:
            dirfd = static_cast<int>(a);
            path = static_cast<const char*>(b);
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

/// Handles system calls that end, fork or replace the process.
void ends_or_forks_process(long call, long a) noexcept {
    switch (call) {
        case SYS_io_uring_setup:
        case SYS_io_uring_enter:
        case SYS_io_setup:
        case SYS_io_submit:
            buffer::disable_buffering("the program uses I/O rings, which work without calls that could be seen");
            break;
        case SYS_exit_group:
            intercept::flush_at_process_end();
            break;
        case SYS_utimensat:
        case SYS_fchmod:
        case SYS_fchmodat:
        case SYS_fchown:
        case SYS_fchownat:
        case SYS_fsetxattr:
        case SYS_setxattr:
            if (buffer::has_registered_descriptors()) {
                buffer::flush_all();  // what is written later would change it once more
            }
            break;
        case SYS_exit:
        case SYS_unshare:
        case SYS_setns:
            intercept::disable_before_namespace_change();
            break;
        case SYS_seccomp:
            intercept::disable_before_syscall_filter();
            break;
        case SYS_prctl:
            if (a == PR_SET_SECCOMP) {
                intercept::disable_before_syscall_filter();
            }
            break;
        case SYS_execve:
        case SYS_execveat:
            buffer::prepare_child_process(buffer::ChildKind::Vanishing);
            intercept::flush_before_exec();
            break;
        case SYS_clone: {
            constexpr long thread = 0x00010000;
            if ((a & thread) == 0) {
                buffer::prepare_child_process(buffer::ChildKind::Copy);
            }
            break;
        }
#if defined(__x86_64__)
        case SYS_fork:
        case SYS_vfork:
#endif
        case SYS_clone3:
            buffer::prepare_child_process(buffer::ChildKind::Copy);
            break;
        default:
            break;
    }
}

}  // namespace

long wrap_syscall(long call, long a, long b, long c, long d, long e, long f) {
    if (buffer::table == nullptr && !trace::is_tracing()) {
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    long result = 0;
    if (dispatch_transfer_call(call, {a}, {b}, {c}, {d}, {f}, result) ||
        dispatch_descriptor_call(call, {a}, {b}, {c}, {d}, {e}, result)) {
        return result;
    }
    if (call == SYS_mmap) {
        // Not through libc's mmap(): libraries of MPI overwrite its beginning with a jump to code that ends here.
        intercept::prepare_mapping(static_cast<int>(e), static_cast<int>(c), static_cast<int>(d));
        const std::uint64_t began = trace::is_tracing() ? system::ticks() : 0;
        result = NEXT(syscall)(call, a, b, c, d, e, f);
        if ((d & MAP_ANONYMOUS) == 0 && trace::is_traced_descriptor(static_cast<int>(e))) {
            trace::record_call(static_cast<int>(e), trace::Kind::Map, began);
        }
        return result;
    }
    int first = -1;
    int second = -1;
    if (find_descriptors_to_flush(call, {a}, {b}, {c}, first, second)) {
        const buffer::PassThrough one(first);
        const buffer::PassThrough other(second);
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    int dirfd = AT_FDCWD;
    const char* path = nullptr;
    if (find_named_path(call, {a}, {b}, dirfd, path)) {
        const intercept::PassThroughPath around(dirfd, path, true);
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    ends_or_forks_process(call, a);
    return NEXT(syscall)(call, a, b, c, d, e, f);
}
