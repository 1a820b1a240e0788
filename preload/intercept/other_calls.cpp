// SPDX-License-Identifier: Apache-2.0
// Calls that the kernel does, on files that it must see as the program does: syncing, mapping, copying inside the
// kernel, asynchronous I/O, limits.
#include "intercept/errors.hpp"
#include "system/oldest_libc.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <new>

SONDE_OLDEST(pthread_testcancel);

namespace {

using namespace sonde;
using trace::Kind;

/// A buffered one. Beside: see the top of transfer.cpp.
template <class Real>
__attribute__((noinline)) int sync_buffered(int fd, Real real) {
    pthread_testcancel();
    const int error = buffer::flush_descriptor(fd);
    return intercept::combine_flush_result(real(), error);
}

template <class Real>
int sync_descriptor(int fd, Real real) {
    if (buffer::get_candidate_state(fd) == buffer::not_examined && buffer::counts_calls(fd)) [[unlikely]] {
        buffer::flush_to_kernel(fd);
    }
    if (buffer::is_watched_descriptor(fd)) [[unlikely]] {
        return sync_buffered(fd, real);
    }
    if (trace::is_traced_descriptor(fd)) [[unlikely]] {
        const std::uint64_t began = system::ticks();
        const int done = real();
        trace::record_call(fd, Kind::Sync, began);
        return done;
    }
    return real();
}

template <class Real>
void* map_file(int fd, int protection, int flags, Real real) {
    intercept::prepare_mapping(fd, protection, flags);
    if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
        if (trace::is_traced_descriptor(fd)) [[unlikely]] {
            const std::uint64_t began = system::ticks();
            void* done = real();
            trace::record_call(fd, Kind::Map, began);
            return done;
        }
    }
    return real();
}

template <class Real>
auto call_with_flushed_file(int fd, Real real) {
    const buffer::PassThrough around(fd);
    return real();
}

/// Handles calls that copy from one descriptor to another inside the kernel.
template <class Real>
ssize_t copy_between_descriptors(int in, const off64_t* in_at, int out, const off64_t* out_at, std::size_t bytes,
                                 Real real) {
    const bool reads = trace::is_traced_descriptor(in);
    const bool writes = trace::is_traced_descriptor(out);
    if (reads || writes) [[unlikely]] {
        const off64_t from = in_at != nullptr ? *in_at : trace::current_offset;
        const off64_t to = out_at != nullptr ? *out_at : trace::current_offset;
        const std::uint64_t began = system::ticks();
        const ssize_t result = real();
        if (reads) {
            trace::record_transfer(in, Kind::Read, bytes, result, from, nullptr, began);
        }
        if (writes) {
            trace::record_transfer(out, Kind::Write, bytes, result, to, nullptr, began);
        }
        return result;
    }
    const buffer::PassThrough source(in);
    const buffer::PassThrough target(out);
    return real();
}

/// Threads of libc execute POSIX asynchronous I/O by calls that are not intercepted, so its files are released.
template <class Job>
void release_file_for_async_io(const Job* job) noexcept {
    if (job != nullptr) {
        buffer::exclude_descriptor(job->aio_fildes);
        buffer::release_file_of_descriptor(job->aio_fildes, "used by asynchronous I/O");
    }
}

template <class Job>
void release_files_for_async_io(Job* const* jobs, int count) noexcept {
    for (int i = 0; jobs != nullptr && i < count; ++i) {
        release_file_for_async_io(jobs[i]);
    }
}

}  // namespace

namespace sonde::intercept {

void prepare_mapping(int fd, int protection, int flags) noexcept {
    if ((flags & MAP_TYPE) != MAP_PRIVATE && (protection & PROT_WRITE) != 0) {
        buffer::record_shared_map((flags & MAP_ANONYMOUS) != 0 ? -1 : fd);
    }
    if (fd < 0 || (flags & MAP_ANONYMOUS) != 0) {
        return;
    }
    buffer::exclude_descriptor(fd);
    if (buffer::is_watched_descriptor(fd)) [[unlikely]] {
        buffer::release_file_of_descriptor(fd, "mapped into memory");
    } else if (buffer::unguarded_files.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        struct stat status {};
        if (raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) == 0) {
            buffer::release_file_of_inode(status.st_dev, status.st_ino, "mapped into memory");
        }
    }
}

}  // namespace sonde::intercept

int wrap_fsync(int fd) {
    return sync_descriptor(fd, [=] { return NEXT(fsync)(fd); });
}
int wrap_fdatasync(int fd) {
    return sync_descriptor(fd, [=] { return NEXT(fdatasync)(fd); });
}
int wrap_sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
    return sync_descriptor(fd, [=] { return NEXT(sync_file_range)(fd, offset, bytes, flags); });
}
void wrap_sync(void) {
    if (buffer::has_registered_descriptors()) {
        buffer::flush_all();
    }
    NEXT(sync)();
}
int wrap_syncfs(int fd) {
    if (buffer::has_registered_descriptors()) {
        buffer::flush_all();
    }
    return NEXT(syncfs)(fd);
}
int wrap_posix_fadvise(int fd, off64_t offset, off64_t bytes, int advice) {
    return call_with_flushed_file(fd, [=] { return NEXT(posix_fadvise)(fd, offset, bytes, advice); });
}
int wrap_posix_fadvise64(int fd, off64_t offset, off64_t bytes, int advice) {
    return call_with_flushed_file(fd, [=] { return NEXT(posix_fadvise64)(fd, offset, bytes, advice); });
}
ssize_t wrap_readahead(int fd, off64_t offset, size_t bytes) {
    return call_with_flushed_file(fd, [=] { return NEXT(readahead)(fd, offset, bytes); });
}
void* wrap_mmap(void* where, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    return map_file(fd, protection, flags, [=] { return NEXT(mmap)(where, bytes, protection, flags, fd, offset); });
}
void* wrap_mmap64(void* where, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    return map_file(fd, protection, flags, [=] { return NEXT(mmap64)(where, bytes, protection, flags, fd, offset); });
}
ssize_t wrap_copy_file_range(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags) {
    return copy_between_descriptors(in, in_at, out, out_at, bytes,
                                    [=] { return NEXT(copy_file_range)(in, in_at, out, out_at, bytes, flags); });
}
ssize_t wrap_sendfile(int out, int in, off64_t* offset, size_t bytes) {
    return copy_between_descriptors(in, offset, out, nullptr, bytes,
                                    [=] { return NEXT(sendfile)(out, in, offset, bytes); });
}
ssize_t wrap_sendfile64(int out, int in, off64_t* offset, size_t bytes) {
    return copy_between_descriptors(in, offset, out, nullptr, bytes,
                                    [=] { return NEXT(sendfile64)(out, in, offset, bytes); });
}
ssize_t wrap_splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags) {
    return copy_between_descriptors(in, in_at, out, out_at, bytes,
                                    [=] { return NEXT(splice)(in, in_at, out, out_at, bytes, flags); });
}
int wrap_aio_read(struct aiocb* job) {
    release_file_for_async_io(job);
    return NEXT(aio_read)(job);
}
int wrap_aio_read64(struct aiocb64* job) {
    release_file_for_async_io(job);
    return NEXT(aio_read64)(job);
}
int wrap_aio_write(struct aiocb* job) {
    release_file_for_async_io(job);
    return NEXT(aio_write)(job);
}
int wrap_aio_write64(struct aiocb64* job) {
    release_file_for_async_io(job);
    return NEXT(aio_write64)(job);
}
int wrap_aio_fsync(int operation, struct aiocb* job) {
    release_file_for_async_io(job);
    return NEXT(aio_fsync)(operation, job);
}
int wrap_aio_fsync64(int operation, struct aiocb64* job) {
    release_file_for_async_io(job);
    return NEXT(aio_fsync64)(operation, job);
}
int wrap_lio_listio(int mode, struct aiocb* const* jobs, int count, struct sigevent* event) {
    release_files_for_async_io(jobs, count);
    return NEXT(lio_listio)(mode, jobs, count, event);
}
int wrap_lio_listio64(int mode, struct aiocb64* const* jobs, int count, struct sigevent* event) {
    release_files_for_async_io(jobs, count);
    return NEXT(lio_listio64)(mode, jobs, count, event);
}
int wrap_setrlimit(int resource, const struct rlimit* limit) {
    const int done = NEXT(setrlimit)(resource, limit);
    buffer::read_file_size_limit();
    return done;
}
int wrap_setrlimit64(int resource, const struct rlimit* limit) {
    const int done = NEXT(setrlimit64)(resource, limit);
    buffer::read_file_size_limit();
    return done;
}
int wrap_prlimit(pid_t pid, int resource, const struct rlimit* limit, struct rlimit* old) {
    const int done = NEXT(prlimit)(pid, resource, limit, old);
    buffer::read_file_size_limit();
    return done;
}
int wrap_prlimit64(pid_t pid, int resource, const struct rlimit* limit, struct rlimit* old) {
    const int done = NEXT(prlimit64)(pid, resource, limit, old);
    buffer::read_file_size_limit();
    return done;
}
