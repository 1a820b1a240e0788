// SPDX-License-Identifier: Apache-2.0
// read, write, lseek and their kin.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"
#include "system/oldest_libc.hpp"

#include <climits>

SONDE_OLDEST(pthread_testcancel);

namespace {

using namespace sonde;  // NOLINT: this file is nothing but glue

// A call that goes on to the kernel as it is must be the last thing that its function does, and the function must not
// return: after a system call the processor does not know any more where calls return to, and guesses wrong at each
// return on the way. So all else stands in functions of its own, and the real call is a jump.

/// Executes one read or write on a traced file.
template <class Real>
__attribute__((noinline)) ssize_t transfer_traced(int fd, trace::Kind kind, const void* data, std::size_t bytes,
                                                  off64_t offset, Real real) {
    const std::uint64_t began = system::ticks();
    const ssize_t result = real();
    trace::record_transfer(fd, kind, bytes, result, offset, data, began);
    return result;
}

/// On a file that is buffered.
template <class Real>
__attribute__((noinline)) ssize_t transfer_watched(int fd, trace::Kind kind, const void* data, std::size_t bytes,
                                                   off64_t offset, Real real) {
    if (buffer::BypassSlot* slot = buffer::enter_bypass(fd)) {
        const ssize_t result = real();
        buffer::leave_bypass(*slot, kind == trace::Kind::Write, result);
        return result;
    }
    pthread_testcancel();
    const buffer::IoPart part{static_cast<char*>(const_cast<void*>(data)), bytes};
    const buffer::CallResult answer =
        kind == trace::Kind::Read ? buffer::read(fd, &part, 1, offset) : buffer::write(fd, &part, 1, offset);
    if (answer.is_done) {
        return intercept::to_libc_result(answer.value);
    }
    return buffer::make_real_call(answer, real);
}

/// Executes a call on a candidate, whose calls are counted.
__attribute__((noinline)) buffer::CallRoute count_call(int fd) noexcept {
    return system::Critical::is_in_library() || intercept::is_in_vfork_child() ? buffer::CallRoute::Pass
                                                                               : buffer::count_candidate_call(fd);
}

template <class Real>
__attribute__((noinline)) ssize_t transfer_candidate(int fd, buffer::CallRoute route, trace::Kind kind,
                                                     const void* data, std::size_t bytes, off64_t offset, Real real) {
    if (route == buffer::CallRoute::Buffer) {
        return transfer_watched(fd, kind, data, bytes, offset, real);
    }
    const std::uint64_t began = system::now_ns();
    const ssize_t result = real();
    const int saved_errno = errno;
    buffer::record_candidate_call_time(fd, bytes, system::now_ns() - began);
    errno = saved_errno;
    return result;
}

/// Executes one read or write through the buffer, or by `real`, the function of libc.
template <class Real>
__attribute__((always_inline)) inline ssize_t transfer_buffer(int fd, trace::Kind kind, const void* data,
                                                              std::size_t bytes, off64_t offset, Real real) {
    if (buffer::is_watched_descriptor(fd)) [[unlikely]] {
        return buffer::is_released(fd) ? real() : transfer_watched(fd, kind, data, bytes, offset, real);
    }
    if (trace::is_traced_descriptor(fd)) [[unlikely]] {
        return transfer_traced(fd, kind, data, bytes, offset, real);
    }
    if (buffer::counts_calls(fd) && !buffer::count_usual_call(fd)) [[unlikely]] {
        const buffer::CallRoute route = count_call(fd);
        if (route != buffer::CallRoute::Pass) {
            return transfer_candidate(fd, route, kind, data, bytes, offset, real);
        }
    }
    return real();
}

std::size_t sum_vector_bytes(Vectors parts, int count) noexcept {
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) {
        bytes += parts[i].iov_len;
    }
    return bytes;
}

/// Executes a vectored read or write on a buffered or traced file.
template <class Real>
__attribute__((noinline)) ssize_t transfer_vectors_watched(int fd, trace::Kind kind, Vectors parts, int count,
                                                           off64_t offset, int flags, Real real) {
    if (trace::is_traced_descriptor(fd)) {
        const std::uint64_t began = system::ticks();
        const ssize_t result = real();
        if (count > 0) {
            trace::record_transfer(fd, kind, result < 0 ? 0 : sum_vector_bytes(parts, count), result, offset,
                                   result < 0 ? nullptr : parts[0].iov_base, began);
        }
        return result;
    }
    if (buffer::BypassSlot* slot = buffer::enter_bypass(fd)) {
        const ssize_t result = real();
        buffer::leave_bypass(*slot, kind == trace::Kind::Write, result);
        return result;
    }
    pthread_testcancel();
    static constexpr int max_copied_parts = 64;
    buffer::IoPart copies[max_copied_parts];
    std::size_t bytes = 0;
    bool plain =
        flags == 0 && count > 0 && count <= max_copied_parts && reinterpret_cast<std::uintptr_t>(parts) > 65536;
    for (int i = 0; plain && i < count; ++i) {
        copies[i] = {static_cast<char*>(parts[i].iov_base), parts[i].iov_len};
        plain = !__builtin_add_overflow(bytes, parts[i].iov_len, &bytes) && bytes <= SSIZE_MAX;
    }
    if (!plain) {
        const buffer::PassThrough around(fd);
        return real();
    }
    const auto number = static_cast<std::size_t>(count);
    const buffer::CallResult answer = kind == trace::Kind::Read ? buffer::read(fd, copies, number, offset)
                                                                : buffer::write(fd, copies, number, offset);
    if (answer.is_done) {
        return intercept::to_libc_result(answer.value);
    }
    return buffer::make_real_call(answer, real);
}

/// The same for several pieces. `flags` other than zero ask for things that are the kernel's: it gets the call, and the
/// file as it is.
template <class Real>
__attribute__((always_inline)) inline ssize_t transfer_vectors(int fd, trace::Kind kind, Vectors parts, int count,
                                                               off64_t offset, int flags, Real real) {
    if (buffer::is_watched_descriptor(fd) || trace::is_traced_descriptor(fd) ||
        (buffer::counts_calls(fd) && !buffer::count_usual_call(fd) && count_call(fd) == buffer::CallRoute::Buffer))
        [[unlikely]] {
        return transfer_vectors_watched(fd, kind, parts, count, offset, flags, real);
    }
    return real();
}

/// With an explicit offset. A negative one is passed to the kernel, which returns the error.
template <class Real>
ssize_t transfer_buffer_at(int fd, trace::Kind kind, const void* data, std::size_t bytes, off64_t offset, Real real) {
    return offset < 0 ? real() : transfer_buffer(fd, kind, data, bytes, offset, real);
}

template <class Real>
ssize_t transfer_vectors_at(int fd, trace::Kind kind, Vectors parts, int count, off64_t offset, int flags, Real real) {
    return offset < 0 ? real() : transfer_vectors(fd, kind, parts, count, offset, flags, real);
}

/// preadv2 and pwritev2: -1 stands for the offset of the descriptor.
template <class Real>
ssize_t transfer_vectors_with_flags(int fd, trace::Kind kind, Vectors parts, int count, off64_t offset, int flags,
                                    Real real) {
    return offset < -1 ? real() : transfer_vectors(fd, kind, parts, count, offset, flags, real);
}

template <class Real>
__attribute__((noinline)) off64_t seek_watched(int fd, off64_t offset, int whence, Real real) {
    if (trace::is_traced_descriptor(fd)) {
        const std::uint64_t began = system::ticks();
        const off64_t result = real();
        trace::record_seek(fd, result, began);
        return result;
    }
    if (buffer::BypassSlot* slot = buffer::enter_bypass(fd)) {
        const off64_t result = real();
        buffer::leave_bypass(*slot);
        return result;
    }
    const buffer::CallResult answer = buffer::seek(fd, offset, whence);
    if (answer.is_done) {
        return intercept::to_libc_result(answer.value);
    }
    return buffer::make_real_call(answer, real);
}

template <class Real>
__attribute__((always_inline)) inline off64_t seek(int fd, off64_t offset, int whence, Real real) {
    if (buffer::is_watched_descriptor(fd) || trace::is_traced_descriptor(fd)) [[unlikely]] {
        return seek_watched(fd, offset, whence, real);
    }
    if (buffer::get_candidate_state(fd) == buffer::not_examined && buffer::counts_calls(fd) &&
        count_call(fd) == buffer::CallRoute::Buffer) [[unlikely]] {
        return seek_watched(fd, offset, whence, real);
    }
    return real();
}

constexpr auto Read = trace::Kind::Read;
constexpr auto Write = trace::Kind::Write;
constexpr off64_t current_offset = buffer::current_offset;

}  // namespace

// --- read ---
ssize_t wrap_read(int fd, void* data, size_t bytes) {
    return transfer_buffer(fd, Read, data, bytes, current_offset, [=] { return NEXT(read)(fd, data, bytes); });
}
ssize_t wrap___read(int fd, void* data, size_t bytes) {
    return transfer_buffer(fd, Read, data, bytes, current_offset, [=] { return NEXT(__read)(fd, data, bytes); });
}
ssize_t wrap___read_chk(int fd, void* data, size_t bytes, size_t room) {
    // A count above the buffer size is passed to libc, which ends the program with a message.
    return bytes > room ? NEXT(__read_chk)(fd, data, bytes, room)
                        : transfer_buffer(fd, Read, data, bytes, current_offset,
                                          [=] { return NEXT(__read_chk)(fd, data, bytes, room); });
}
ssize_t wrap_pread(int fd, void* data, size_t bytes, off64_t offset) {
    return transfer_buffer_at(fd, Read, data, bytes, offset, [=] { return NEXT(pread)(fd, data, bytes, offset); });
}
ssize_t wrap_pread64(int fd, void* data, size_t bytes, off64_t offset) {
    return transfer_buffer_at(fd, Read, data, bytes, offset, [=] { return NEXT(pread64)(fd, data, bytes, offset); });
}
ssize_t wrap___pread64(int fd, void* data, size_t bytes, off64_t offset) {
    return transfer_buffer_at(fd, Read, data, bytes, offset, [=] { return NEXT(__pread64)(fd, data, bytes, offset); });
}
ssize_t wrap___pread_chk(int fd, void* data, size_t bytes, off64_t offset, size_t room) {
    return bytes > room ? NEXT(__pread_chk)(fd, data, bytes, offset, room)
                        : transfer_buffer_at(fd, Read, data, bytes, offset,
                                             [=] { return NEXT(__pread_chk)(fd, data, bytes, offset, room); });
}
ssize_t wrap___pread64_chk(int fd, void* data, size_t bytes, off64_t offset, size_t room) {
    return bytes > room ? NEXT(__pread64_chk)(fd, data, bytes, offset, room)
                        : transfer_buffer_at(fd, Read, data, bytes, offset,
                                             [=] { return NEXT(__pread64_chk)(fd, data, bytes, offset, room); });
}
ssize_t wrap_readv(int fd, Vectors parts, int count) {
    return transfer_vectors(fd, Read, parts, count, current_offset, 0, [=] { return NEXT(readv)(fd, parts, count); });
}
ssize_t wrap_preadv(int fd, Vectors parts, int count, off64_t offset) {
    return transfer_vectors_at(fd, Read, parts, count, offset, 0,
                               [=] { return NEXT(preadv)(fd, parts, count, offset); });
}
ssize_t wrap_preadv64(int fd, Vectors parts, int count, off64_t offset) {
    return transfer_vectors_at(fd, Read, parts, count, offset, 0,
                               [=] { return NEXT(preadv64)(fd, parts, count, offset); });
}
ssize_t wrap_preadv2(int fd, Vectors parts, int count, off64_t offset, int flags) {
    return transfer_vectors_with_flags(fd, Read, parts, count, offset, flags,
                                       [=] { return NEXT(preadv2)(fd, parts, count, offset, flags); });
}
ssize_t wrap_preadv64v2(int fd, Vectors parts, int count, off64_t offset, int flags) {
    return transfer_vectors_with_flags(fd, Read, parts, count, offset, flags,
                                       [=] { return NEXT(preadv64v2)(fd, parts, count, offset, flags); });
}

// --- write ---
ssize_t wrap_write(int fd, const void* data, size_t bytes) {
    return transfer_buffer(fd, Write, data, bytes, current_offset, [=] { return NEXT(write)(fd, data, bytes); });
}
ssize_t wrap___write(int fd, const void* data, size_t bytes) {
    return transfer_buffer(fd, Write, data, bytes, current_offset, [=] { return NEXT(__write)(fd, data, bytes); });
}
ssize_t wrap_pwrite(int fd, const void* data, size_t bytes, off64_t offset) {
    return transfer_buffer_at(fd, Write, data, bytes, offset, [=] { return NEXT(pwrite)(fd, data, bytes, offset); });
}
ssize_t wrap_pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
    return transfer_buffer_at(fd, Write, data, bytes, offset, [=] { return NEXT(pwrite64)(fd, data, bytes, offset); });
}
ssize_t wrap___pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
    return transfer_buffer_at(fd, Write, data, bytes, offset,
                              [=] { return NEXT(__pwrite64)(fd, data, bytes, offset); });
}
ssize_t wrap_writev(int fd, Vectors parts, int count) {
    return transfer_vectors(fd, Write, parts, count, current_offset, 0, [=] { return NEXT(writev)(fd, parts, count); });
}
ssize_t wrap_pwritev(int fd, Vectors parts, int count, off64_t offset) {
    return transfer_vectors_at(fd, Write, parts, count, offset, 0,
                               [=] { return NEXT(pwritev)(fd, parts, count, offset); });
}
ssize_t wrap_pwritev64(int fd, Vectors parts, int count, off64_t offset) {
    return transfer_vectors_at(fd, Write, parts, count, offset, 0,
                               [=] { return NEXT(pwritev64)(fd, parts, count, offset); });
}
ssize_t wrap_pwritev2(int fd, Vectors parts, int count, off64_t offset, int flags) {
    return transfer_vectors_with_flags(fd, Write, parts, count, offset, flags,
                                       [=] { return NEXT(pwritev2)(fd, parts, count, offset, flags); });
}
ssize_t wrap_pwritev64v2(int fd, Vectors parts, int count, off64_t offset, int flags) {
    return transfer_vectors_with_flags(fd, Write, parts, count, offset, flags,
                                       [=] { return NEXT(pwritev64v2)(fd, parts, count, offset, flags); });
}

// --- lseek ---
off64_t wrap_lseek(int fd, off64_t offset, int whence) {
    return seek(fd, offset, whence, [=] { return NEXT(lseek)(fd, offset, whence); });
}
off64_t wrap_lseek64(int fd, off64_t offset, int whence) {
    return seek(fd, offset, whence, [=] { return NEXT(lseek64)(fd, offset, whence); });
}
off64_t wrap_llseek(int fd, off64_t offset, int whence) {
    return seek(fd, offset, whence, [=] { return NEXT(llseek)(fd, offset, whence); });
}
off64_t wrap___lseek(int fd, off64_t offset, int whence) {
    return seek(fd, offset, whence, [=] { return NEXT(__lseek)(fd, offset, whence); });
}
