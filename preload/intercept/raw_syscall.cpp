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
T* convert_to_pointer(long value) noexcept {
    return reinterpret_cast<T*>(value);
}

int convert_to_int(long value) noexcept {
    return static_cast<int>(value);
}

std::size_t convert_to_size(long value) noexcept {
    return static_cast<std::size_t>(value);
}

/// Executes a read or write. Returns false for other system calls.
bool dispatch_transfer_call(long call, long a, long b, long c, long d, long f, long& result) noexcept {
    const int fd = convert_to_int(a);
    switch (call) {
        case SYS_read:
            result = wrap_read(fd, convert_to_pointer<void>(b), convert_to_size(c));
            return true;
        case SYS_write:
            result = wrap_write(fd, convert_to_pointer<void>(b), convert_to_size(c));
            return true;
        case SYS_pread64:
            result = wrap_pread64(fd, convert_to_pointer<void>(b), convert_to_size(c), d);
            return true;
        case SYS_pwrite64:
            result = wrap_pwrite64(fd, convert_to_pointer<void>(b), convert_to_size(c), d);
            return true;
        case SYS_readv:
            result = wrap_readv(fd, convert_to_pointer<iovec>(b), convert_to_int(c));
            return true;
        case SYS_writev:
            result = wrap_writev(fd, convert_to_pointer<iovec>(b), convert_to_int(c));
            return true;
        case SYS_preadv:
            result = wrap_preadv64(fd, convert_to_pointer<iovec>(b), convert_to_int(c), d);
            return true;
        case SYS_pwritev:
            result = wrap_pwritev64(fd, convert_to_pointer<iovec>(b), convert_to_int(c), d);
            return true;
        case SYS_preadv2:
            result = wrap_preadv64v2(fd, convert_to_pointer<iovec>(b), convert_to_int(c), d, convert_to_int(f));
            return true;
        case SYS_pwritev2:
            result = wrap_pwritev64v2(fd, convert_to_pointer<iovec>(b), convert_to_int(c), d, convert_to_int(f));
            return true;
        case SYS_lseek:
            result = wrap_lseek64(fd, b, convert_to_int(c));
            return true;
        default:
            return false;
    }
}

/// Opening, closing, duplicating, naming.
bool dispatch_descriptor_call(long call, long a, long b, long c, long d, long e, long& result) noexcept {
    switch (call) {
        case SYS_openat:
            result = wrap_openat64(convert_to_int(a), convert_to_pointer<char>(b), convert_to_int(c),
                                   static_cast<mode_t>(d));
            return true;
        case SYS_openat2:
            result = wrap_openat2(convert_to_int(a), convert_to_pointer<char>(b), convert_to_pointer<void>(c),
                                  convert_to_size(d));
            return true;
        case SYS_close:
            result = wrap_close(convert_to_int(a));
            return true;
        case SYS_close_range:
            result = wrap_close_range(static_cast<unsigned>(a), static_cast<unsigned>(b), convert_to_int(c));
            return true;
        case SYS_dup:
            result = wrap_dup(convert_to_int(a));
            return true;
        case SYS_dup3:
            result = wrap_dup3(convert_to_int(a), convert_to_int(b), convert_to_int(c));
            return true;
        case SYS_fcntl:
            result = wrap_fcntl64(convert_to_int(a), convert_to_int(b), c);
            return true;
        case SYS_ioctl:
            result = wrap_ioctl(convert_to_int(a), static_cast<unsigned long>(b), c);
            return true;
        case SYS_flock:
            result = wrap_flock(convert_to_int(a), convert_to_int(b));
            return true;
        case SYS_renameat:
            result = wrap_renameat(convert_to_int(a), convert_to_pointer<char>(b), convert_to_int(c),
                                   convert_to_pointer<char>(d));
            return true;
        case SYS_renameat2:
            result = wrap_renameat2(convert_to_int(a), convert_to_pointer<char>(b), convert_to_int(c),
                                    convert_to_pointer<char>(d), static_cast<unsigned>(e));
            return true;
#if defined(__x86_64__)
        case SYS_open:
            result = wrap_open64(convert_to_pointer<char>(a), convert_to_int(b), static_cast<mode_t>(c));
            return true;
        case SYS_creat:
            result = wrap_creat64(convert_to_pointer<char>(a), static_cast<mode_t>(b));
            return true;
        case SYS_dup2:
            result = wrap_dup2(convert_to_int(a), convert_to_int(b));
            return true;
        case SYS_rename:
            result = wrap_rename(convert_to_pointer<char>(a), convert_to_pointer<char>(b));
            return true;
#endif
        default:
            return false;
    }
}

/// Finds the descriptors that must be flushed before a system call on status, size, syncing or copying.
bool find_descriptors_to_flush(long call, long a, long b, long c, int& first, int& second) noexcept {
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
            first = convert_to_int(a);
            return true;
        case SYS_copy_file_range:
        case SYS_splice:
            first = convert_to_int(a);
            second = convert_to_int(c);
            return true;
        case SYS_sendfile:
            first = convert_to_int(a);
            second = convert_to_int(b);
            return true;
        default:
            return false;
    }
}

/// Finds the path that a system call names.
bool find_named_path(long call, long a, long b, int& dirfd, const char*& path) noexcept {
    dirfd = AT_FDCWD;
    path = convert_to_pointer<char>(a);
    switch (call) {
        case SYS_statx:
        case SYS_newfstatat:
            dirfd = convert_to_int(a);
            path = convert_to_pointer<char>(b);
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
    if (dispatch_transfer_call(call, a, b, c, d, f, result) || dispatch_descriptor_call(call, a, b, c, d, e, result)) {
        return result;
    }
    if (call == SYS_mmap) {
        // Not through libc's mmap(): libraries of MPI overwrite its beginning with a jump to code that ends here.
        intercept::prepare_mapping(convert_to_int(e), convert_to_int(c), convert_to_int(d));
        const std::uint64_t began = trace::is_tracing() ? system::ticks() : 0;
        result = NEXT(syscall)(call, a, b, c, d, e, f);
        if ((d & MAP_ANONYMOUS) == 0 && trace::is_traced_descriptor(convert_to_int(e))) {
            trace::record_call(convert_to_int(e), trace::Kind::Map, began);
        }
        return result;
    }
    int first = -1;
    int second = -1;
    if (find_descriptors_to_flush(call, a, b, c, first, second)) {
        const buffer::PassThrough one(first);
        const buffer::PassThrough other(second);
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    int dirfd = AT_FDCWD;
    const char* path = nullptr;
    if (find_named_path(call, a, b, dirfd, path)) {
        const intercept::PassThroughPath around(dirfd, path, true);
        return NEXT(syscall)(call, a, b, c, d, e, f);
    }
    ends_or_forks_process(call, a);
    return NEXT(syscall)(call, a, b, c, d, e, f);
}
