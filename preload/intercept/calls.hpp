// SPDX-License-Identifier: Apache-2.0
// Every call of libc that we stand in front of, with its type. From this list come our exported functions (defined
// under a name of their own and given libc's name by the assembler, so that no header of libc contradicts), the table
// of the next function in line, and the test that compares the list with what the installed libc exports.
//
// Optional arguments of open, fcntl, ioctl, syscall and clone are declared as fixed ones: on x86-64 and aarch64 they
// arrive in the same places, and an argument that was not given is handed on unread.
#pragma once

#include "intercept/mpi_io_calls.hpp"

#include <aio.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>
#include <csignal>

namespace sonde {
using Path = const char*;
using Vectors = const struct iovec*;
using Handler = void (*)(int);
using Arguments = char* const*;
using Actions = const posix_spawn_file_actions_t*;
using Attributes = const posix_spawnattr_t*;
}  // namespace sonde

#define SONDE_CALLS_OPENING(X)                                                    \
    X(int, open, (sonde::Path path, int flags, mode_t mode))                      \
    X(int, open64, (sonde::Path path, int flags, mode_t mode))                    \
    X(int, __open, (sonde::Path path, int flags, mode_t mode))                    \
    X(int, __open64, (sonde::Path path, int flags, mode_t mode))                  \
    X(int, __open_2, (sonde::Path path, int flags))                               \
    X(int, __open64_2, (sonde::Path path, int flags))                             \
    X(int, openat, (int dirfd, sonde::Path path, int flags, mode_t mode))         \
    X(int, openat64, (int dirfd, sonde::Path path, int flags, mode_t mode))       \
    X(int, __openat_2, (int dirfd, sonde::Path path, int flags))                  \
    X(int, __openat64_2, (int dirfd, sonde::Path path, int flags))                \
    X(int, openat2, (int dirfd, sonde::Path path, const void* how, size_t bytes)) \
    X(int, creat, (sonde::Path path, mode_t mode))                                \
    X(int, creat64, (sonde::Path path, mode_t mode))                              \
    X(int, open_by_handle_at, (int mount, struct file_handle* handle, int flags)) \
    X(int, mkstemp, (char* path))                                                 \
    X(int, mkstemp64, (char* path))                                               \
    X(int, mkostemp, (char* path, int flags))                                     \
    X(int, mkostemp64, (char* path, int flags))                                   \
    X(int, mkstemps, (char* path, int suffix))                                    \
    X(int, mkstemps64, (char* path, int suffix))                                  \
    X(int, mkostemps, (char* path, int suffix, int flags))                        \
    X(int, mkostemps64, (char* path, int suffix, int flags))

#define SONDE_CALLS_DESCRIPTORS(X)                                         \
    X(int, close, (int fd))                                                \
    X(int, __close, (int fd))                                              \
    X(int, close_range, (unsigned first, unsigned last, int flags))        \
    X(void, closefrom, (int first))                                        \
    X(int, dup, (int fd))                                                  \
    X(int, dup2, (int fd, int to))                                         \
    X(int, __dup2, (int fd, int to))                                       \
    X(int, dup3, (int fd, int to, int flags))                              \
    X(int, fcntl, (int fd, int command, long argument))                    \
    X(int, __fcntl, (int fd, int command, long argument))                  \
    X(int, fcntl64, (int fd, int command, long argument))                  \
    X(int, ioctl, (int fd, unsigned long request, long argument))          \
    X(ssize_t, sendmsg, (int fd, const struct msghdr* message, int flags)) \
    X(int, sendmmsg, (int fd, struct mmsghdr* messages, unsigned count, int flags))

#define SONDE_CALLS_TRANSFER(X)                                                                   \
    X(ssize_t, read, (int fd, void* data, size_t bytes))                                          \
    X(ssize_t, __read, (int fd, void* data, size_t bytes))                                        \
    X(ssize_t, __read_chk, (int fd, void* data, size_t bytes, size_t room))                       \
    X(ssize_t, pread, (int fd, void* data, size_t bytes, off64_t offset))                         \
    X(ssize_t, pread64, (int fd, void* data, size_t bytes, off64_t offset))                       \
    X(ssize_t, __pread64, (int fd, void* data, size_t bytes, off64_t offset))                     \
    X(ssize_t, __pread_chk, (int fd, void* data, size_t bytes, off64_t offset, size_t room))      \
    X(ssize_t, __pread64_chk, (int fd, void* data, size_t bytes, off64_t offset, size_t room))    \
    X(ssize_t, readv, (int fd, sonde::Vectors parts, int count))                                  \
    X(ssize_t, preadv, (int fd, sonde::Vectors parts, int count, off64_t offset))                 \
    X(ssize_t, preadv64, (int fd, sonde::Vectors parts, int count, off64_t offset))               \
    X(ssize_t, preadv2, (int fd, sonde::Vectors parts, int count, off64_t offset, int flags))     \
    X(ssize_t, preadv64v2, (int fd, sonde::Vectors parts, int count, off64_t offset, int flags))  \
    X(ssize_t, write, (int fd, const void* data, size_t bytes))                                   \
    X(ssize_t, __write, (int fd, const void* data, size_t bytes))                                 \
    X(ssize_t, pwrite, (int fd, const void* data, size_t bytes, off64_t offset))                  \
    X(ssize_t, pwrite64, (int fd, const void* data, size_t bytes, off64_t offset))                \
    X(ssize_t, __pwrite64, (int fd, const void* data, size_t bytes, off64_t offset))              \
    X(ssize_t, writev, (int fd, sonde::Vectors parts, int count))                                 \
    X(ssize_t, pwritev, (int fd, sonde::Vectors parts, int count, off64_t offset))                \
    X(ssize_t, pwritev64, (int fd, sonde::Vectors parts, int count, off64_t offset))              \
    X(ssize_t, pwritev2, (int fd, sonde::Vectors parts, int count, off64_t offset, int flags))    \
    X(ssize_t, pwritev64v2, (int fd, sonde::Vectors parts, int count, off64_t offset, int flags)) \
    X(off64_t, lseek, (int fd, off64_t offset, int whence))                                       \
    X(off64_t, lseek64, (int fd, off64_t offset, int whence))                                     \
    X(off64_t, llseek, (int fd, off64_t offset, int whence))                                      \
    X(off64_t, __lseek, (int fd, off64_t offset, int whence))

#define SONDE_CALLS_STATUS(X)                                                                          \
    X(int, stat, (sonde::Path path, struct stat * status))                                             \
    X(int, stat64, (sonde::Path path, struct stat * status))                                           \
    X(int, lstat, (sonde::Path path, struct stat * status))                                            \
    X(int, lstat64, (sonde::Path path, struct stat * status))                                          \
    X(int, fstat, (int fd, struct stat* status))                                                       \
    X(int, fstat64, (int fd, struct stat* status))                                                     \
    X(int, fstatat, (int dirfd, sonde::Path path, struct stat* status, int flags))                     \
    X(int, fstatat64, (int dirfd, sonde::Path path, struct stat* status, int flags))                   \
    X(int, __xstat, (int version, sonde::Path path, struct stat* status))                              \
    X(int, __xstat64, (int version, sonde::Path path, struct stat* status))                            \
    X(int, __lxstat, (int version, sonde::Path path, struct stat* status))                             \
    X(int, __lxstat64, (int version, sonde::Path path, struct stat* status))                           \
    X(int, __fxstat, (int version, int fd, struct stat* status))                                       \
    X(int, __fxstat64, (int version, int fd, struct stat* status))                                     \
    X(int, __fxstatat, (int version, int dirfd, sonde::Path path, struct stat* status, int flags))     \
    X(int, __fxstatat64, (int version, int dirfd, sonde::Path path, struct stat* status, int flags))   \
    X(int, statx, (int dirfd, sonde::Path path, int flags, unsigned mask, struct statx* status))       \
    X(int, truncate, (sonde::Path path, off64_t bytes))                                                \
    X(int, truncate64, (sonde::Path path, off64_t bytes))                                              \
    X(int, ftruncate, (int fd, off64_t bytes))                                                         \
    X(int, ftruncate64, (int fd, off64_t bytes))                                                       \
    X(int, fallocate, (int fd, int mode, off64_t offset, off64_t bytes))                               \
    X(int, fallocate64, (int fd, int mode, off64_t offset, off64_t bytes))                             \
    X(int, posix_fallocate, (int fd, off64_t offset, off64_t bytes))                                   \
    X(int, posix_fallocate64, (int fd, off64_t offset, off64_t bytes))                                 \
    X(int, unlink, (sonde::Path path))                                                                 \
    X(int, unlinkat, (int dirfd, sonde::Path path, int flags))                                         \
    X(int, remove, (sonde::Path path))                                                                 \
    X(int, rename, (sonde::Path from, sonde::Path to))                                                 \
    X(int, renameat, (int dirfd, sonde::Path from, int to_at, sonde::Path to))                         \
    X(int, renameat2, (int dirfd, sonde::Path from, int to_at, sonde::Path to, unsigned flags))        \
    X(int, link, (sonde::Path from, sonde::Path to))                                                   \
    X(int, linkat, (int dirfd, sonde::Path from, int to_at, sonde::Path to, int flags))                \
    X(int, futimens, (int fd, const struct timespec* times))                                           \
    X(int, utimensat, (int dirfd, sonde::Path path, const struct timespec* times, int flags))          \
    X(int, utimes, (sonde::Path path, const struct timeval* times))                                    \
    X(int, lutimes, (sonde::Path path, const struct timeval* times))                                   \
    X(int, futimes, (int fd, const struct timeval* times))                                             \
    X(int, futimesat, (int dirfd, sonde::Path path, const struct timeval* times))                      \
    X(int, utime, (sonde::Path path, const struct utimbuf* times))                                     \
    X(int, fchmod, (int fd, mode_t mode))                                                              \
    X(int, chmod, (sonde::Path path, mode_t mode))                                                     \
    X(int, fchmodat, (int dirfd, sonde::Path path, mode_t mode, int flags))                            \
    X(int, fchown, (int fd, uid_t user, gid_t group))                                                  \
    X(int, chown, (sonde::Path path, uid_t user, gid_t group))                                         \
    X(int, lchown, (sonde::Path path, uid_t user, gid_t group))                                        \
    X(int, fchownat, (int dirfd, sonde::Path path, uid_t user, gid_t group, int flags))                \
    X(int, fsetxattr, (int fd, sonde::Path name, const void* value, size_t bytes, int flags))          \
    X(int, setxattr, (sonde::Path path, sonde::Path name, const void* value, size_t bytes, int flags)) \
    X(int, lsetxattr, (sonde::Path path, sonde::Path name, const void* value, size_t bytes, int flags))

#define SONDE_CALLS_AROUND(X)                                                                                     \
    X(int, fsync, (int fd))                                                                                       \
    X(int, fdatasync, (int fd))                                                                                   \
    X(void, sync, (void))                                                                                         \
    X(int, syncfs, (int fd))                                                                                      \
    X(int, sync_file_range, (int fd, off64_t offset, off64_t bytes, unsigned flags))                              \
    X(int, posix_fadvise, (int fd, off64_t offset, off64_t bytes, int advice))                                    \
    X(int, posix_fadvise64, (int fd, off64_t offset, off64_t bytes, int advice))                                  \
    X(ssize_t, readahead, (int fd, off64_t offset, size_t bytes))                                                 \
    X(void*, mmap, (void* where, size_t bytes, int protection, int flags, int fd, off64_t offset))                \
    X(void*, mmap64, (void* where, size_t bytes, int protection, int flags, int fd, off64_t offset))              \
    X(ssize_t, copy_file_range, (int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags)) \
    X(ssize_t, sendfile, (int out, int in, off64_t* offset, size_t bytes))                                        \
    X(ssize_t, sendfile64, (int out, int in, off64_t* offset, size_t bytes))                                      \
    X(ssize_t, splice, (int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags))          \
    X(int, flock, (int fd, int operation))                                                                        \
    X(int, lockf, (int fd, int command, off64_t bytes))                                                           \
    X(int, lockf64, (int fd, int command, off64_t bytes))                                                         \
    X(int, aio_read, (struct aiocb * job))                                                                        \
    X(int, aio_read64, (struct aiocb64 * job))                                                                    \
    X(int, aio_write, (struct aiocb * job))                                                                       \
    X(int, aio_write64, (struct aiocb64 * job))                                                                   \
    X(int, aio_fsync, (int operation, struct aiocb* job))                                                         \
    X(int, aio_fsync64, (int operation, struct aiocb64* job))                                                     \
    X(int, lio_listio, (int mode, struct aiocb* const* jobs, int count, struct sigevent* event))                  \
    X(int, lio_listio64, (int mode, struct aiocb64* const* jobs, int count, struct sigevent* event))              \
    X(int, setrlimit, (int resource, const struct rlimit* limit))                                                 \
    X(int, setrlimit64, (int resource, const struct rlimit* limit))                                               \
    X(int, prlimit, (pid_t pid, int resource, const struct rlimit* limit, struct rlimit* old))                    \
    X(int, prlimit64, (pid_t pid, int resource, const struct rlimit* limit, struct rlimit* old))                  \
    X(long, syscall, (long number, long a, long b, long c, long d, long e, long f))

#define SONDE_CALLS_STREAMS(X)                                              \
    X(FILE*, fopen, (sonde::Path path, const char* mode))                   \
    X(FILE*, fopen64, (sonde::Path path, const char* mode))                 \
    X(FILE*, freopen, (sonde::Path path, const char* mode, FILE* stream))   \
    X(FILE*, freopen64, (sonde::Path path, const char* mode, FILE* stream)) \
    X(FILE*, fdopen, (int fd, const char* mode))                            \
    X(int, fclose, (FILE * stream))                                         \
    X(int, fcloseall, (void))

#define SONDE_CALLS_PROCESSES(X)                                                                                     \
    X(pid_t, fork, (void))                                                                                           \
    X(pid_t, __fork, (void))                                                                                         \
    X(pid_t, _Fork, (void))                                                                                          \
    X(int, clone, (int (*run)(void*), void* stack, int flags, void* argument, void* a, void* b, void* c))            \
    X(int, __clone, (int (*run)(void*), void* stack, int flags, void* argument, void* a, void* b, void* c))          \
    X(int, posix_spawn,                                                                                              \
      (pid_t * pid, sonde::Path path, sonde::Actions actions, sonde::Attributes attributes,                          \
       sonde::Arguments arguments, sonde::Arguments environment))                                                    \
    X(int, posix_spawnp,                                                                                             \
      (pid_t * pid, sonde::Path path, sonde::Actions actions, sonde::Attributes attributes,                          \
       sonde::Arguments arguments, sonde::Arguments environment))                                                    \
    X(int, pidfd_spawn,                                                                                              \
      (int* pid, sonde::Path path, sonde::Actions actions, sonde::Attributes attributes, sonde::Arguments arguments, \
       sonde::Arguments environment))                                                                                \
    X(int, pidfd_spawnp,                                                                                             \
      (int* pid, sonde::Path path, sonde::Actions actions, sonde::Attributes attributes, sonde::Arguments arguments, \
       sonde::Arguments environment))                                                                                \
    X(int, system, (const char* command))                                                                            \
    X(FILE*, popen, (const char* command, const char* mode))                                                         \
    X(int, execve, (sonde::Path path, sonde::Arguments arguments, sonde::Arguments environment))                     \
    X(int, execv, (sonde::Path path, sonde::Arguments arguments))                                                    \
    X(int, execvp, (sonde::Path path, sonde::Arguments arguments))                                                   \
    X(int, execvpe, (sonde::Path path, sonde::Arguments arguments, sonde::Arguments environment))                    \
    X(int, execveat,                                                                                                 \
      (int dirfd, sonde::Path path, sonde::Arguments arguments, sonde::Arguments environment, int flags))            \
    X(int, fexecve, (int fd, sonde::Arguments arguments, sonde::Arguments environment))                              \
    X(int, execl, (sonde::Path path, const char* first, ...))                                                        \
    X(int, execlp, (sonde::Path path, const char* first, ...))                                                       \
    X(int, execle, (sonde::Path path, const char* first, ...))                                                       \
    X(void, _exit, (int status))                                                                                     \
    X(void, _Exit, (int status))                                                                                     \
    X(void, quick_exit, (int status))                                                                                \
    X(void, abort, (void))                                                                                           \
    X(void, pthread_exit, (void* result))

// Shared memory, separate tables and spaces, and filters of system calls.
#define SONDE_CALLS_ALONE(X)                                     \
    X(void*, shmat, (int segment, const void* where, int flags)) \
    X(int, unshare, (int flags))                                 \
    X(int, setns, (int fd, int kind))                            \
    X(int, prctl, (int option, long a, long b, long c, long d))

#define SONDE_CALLS_SIGNALS(X)                                                                  \
    X(int, sigaction, (int number, const struct sigaction* action, struct sigaction* before))   \
    X(int, __sigaction, (int number, const struct sigaction* action, struct sigaction* before)) \
    X(sonde::Handler, signal, (int number, sonde::Handler handler))                             \
    X(sonde::Handler, bsd_signal, (int number, sonde::Handler handler))                         \
    X(sonde::Handler, ssignal, (int number, sonde::Handler handler))                            \
    X(sonde::Handler, sysv_signal, (int number, sonde::Handler handler))                        \
    X(sonde::Handler, __sysv_signal, (int number, sonde::Handler handler))                      \
    X(sonde::Handler, sigset, (int number, sonde::Handler handler))

// Not libc's: calls of other libraries that move data behind our back, or that say whose descriptors to leave alone.
#define SONDE_CALLS_ELSEWHERE(X)                                                                                  \
    X(int, io_setup, (int events, void* context))                                                                 \
    X(int, io_queue_init, (int events, void* context))                                                            \
    X(int, io_uring_setup, (unsigned entries, void* parameters))                                                  \
    X(int, io_uring_queue_init, (unsigned entries, void* ring, unsigned flags))                                   \
    X(int, io_uring_queue_init_params, (unsigned entries, void* ring, void* parameters))                          \
    X(int, io_uring_queue_init_mem, (unsigned entries, void* ring, void* parameters, void* memory, size_t bytes)) \
    X(FILE*, _ZNSt12__basic_fileIcE4fileEv, (void* self))

#define SONDE_CALLS(X)         \
    SONDE_CALLS_OPENING(X)     \
    SONDE_CALLS_DESCRIPTORS(X) \
    SONDE_CALLS_TRANSFER(X)    \
    SONDE_CALLS_STATUS(X)      \
    SONDE_CALLS_AROUND(X)      \
    SONDE_CALLS_STREAMS(X)     \
    SONDE_CALLS_PROCESSES(X)   \
    SONDE_CALLS_SIGNALS(X)     \
    SONDE_CALLS_ALONE(X)       \
    SONDE_CALLS_ELSEWHERE(X)   \
    SONDE_CALLS_MPI(X)

#define SONDE_DECLARE(result, name, parameters) \
    extern "C" __attribute__((visibility("default"))) result wrap_##name parameters __asm__(#name);
SONDE_CALLS(SONDE_DECLARE)
#undef SONDE_DECLARE
