// SPDX-License-Identifier: Apache-2.0
// Intercepts calls that close, duplicate, lock or pass on descriptors.
#include "intercept/errors.hpp"
#include "intercept/lifetime.hpp"
#include "system/oldest_libc.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <algorithm>

SONDE_OLDEST(pthread_testcancel);

namespace {

using namespace sonde;

// Flags of close_range(), which older headers do not have.
constexpr unsigned close_range_unshare = 1U << 1U;
constexpr unsigned close_range_cloexec = 1U << 2U;

int get_highest_descriptor() noexcept {
    return std::max({buffer::get_highest_registered_descriptor(), buffer::find_highest_candidate(),
                     trace::get_highest_traced_descriptor()});
}

template <class Real>
int close_descriptor(int fd, Real real) {
    if (intercept::is_library_descriptor(fd)) [[unlikely]] {
        errno = EBADF;  // to the program it is not open
        return -1;
    }
    if ((buffer::is_watched_descriptor(fd) || trace::is_traced_descriptor(fd)) && intercept::is_in_vfork_child())
        [[unlikely]] {
        return real();
    }
    if (buffer::is_watched_descriptor(fd)) [[unlikely]] {
        pthread_testcancel();
        const int error = buffer::detach_descriptor(fd);
        const int done = real();
        return intercept::combine_flush_result(done, error);
    }
    if (trace::is_traced_descriptor(fd)) [[unlikely]] {
        const std::uint64_t began = system::ticks();
        const int done = real();
        trace::record_close(fd, began);
        return done;
    }
    if (buffer::get_candidate_state(fd) != buffer::pass_through && !intercept::is_in_vfork_child()) {
        buffer::forget_candidate(fd);
    }
    return real();
}

/// Flushes and unregisters the files of [first, last] before the kernel closes them; descriptors of the library stay
/// open.
template <class Real>
int close_descriptor_range(unsigned first, unsigned last, Real real) {
    const int end = static_cast<int>(std::min(last, static_cast<unsigned>(buffer::max_descriptors - 1)));
    const bool note = !intercept::is_in_vfork_child();
    for (int fd = static_cast<int>(std::min(first, static_cast<unsigned>(end)));
         note && fd <= end && fd <= get_highest_descriptor(); ++fd) {
        buffer::forget_candidate(fd);
        if (buffer::is_watched_descriptor(fd)) {
            buffer::detach_descriptor(fd);
        } else if (trace::is_traced_descriptor(fd)) {
            trace::record_close(fd, system::ticks());
        }
    }
    return real();
}

/// `made` was not ours, or is no longer: it is about to become a duplicate.
template <class Real>
int duplicate_to(int fd, int to, Real real) {
    if (intercept::is_in_vfork_child()) {
        return real();
    }
    if (fd != to &&
        (buffer::is_watched_descriptor(to) || trace::is_traced_descriptor(to) ||
         intercept::is_library_descriptor(to)) &&
        raw::call(SYS_fcntl, fd, F_GETFD) >= 0) [[unlikely]] {
        if (intercept::is_library_descriptor(to)) {
            intercept::move_descriptor_off_number(to);
        }
        if (buffer::is_watched_descriptor(to)) {
            buffer::detach_descriptor(to);
        } else if (trace::is_traced_descriptor(to)) {
            trace::record_close(to, system::ticks());
        }
    }
    const int duplicate = real();
    if (duplicate >= 0 && duplicate != fd) {
        if (buffer::is_watched_descriptor(fd)) [[unlikely]] {
            buffer::register_duplicate(fd, duplicate);
        } else if (trace::is_traced_descriptor(fd)) [[unlikely]] {
            trace::record_duplicate(fd, duplicate);
        } else {
            buffer::duplicate_candidate(fd, duplicate);
        }
    }
    return duplicate;
}

bool is_lock(int command) noexcept {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

bool is_lock_request(int command) noexcept {
    return command == F_GETLK || command == F_OFD_GETLK;
}

/// Commands by which the program uses leases or signals itself; a lease of the library would interfere.
bool is_lease_command(int command) noexcept {
    return command == F_SETLEASE || command == F_GETLEASE || command == F_SETSIG || command == F_GETSIG ||
           command == F_SETOWN || command == F_GETOWN || command == F_SETOWN_EX || command == F_GETOWN_EX;
}

bool is_duplicate(int command) noexcept {
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

/// Before an unlock, other processes must find our data; after a lock, this process must find theirs.
template <class Real>
int lock_file(int fd, bool unlock, Real real) {
    buffer::flush_to_kernel(fd);
    const int done = real();
    if (done == 0 && !unlock) {
        buffer::read_again_after_lock(fd);
    }
    return done;
}

/// lockf() counts from the offset of the descriptor on, which the kernel must know.
template <class Real>
int lock_range_from_offset(int fd, int command, Real real) {
    buffer::record_file_lock(fd);
    if (!buffer::is_watched_descriptor(fd)) {
        return real();
    }
    const int done = [&] {
        const buffer::PassThrough around(fd);
        return real();
    }();
    if (done == 0 && (command == F_LOCK || command == F_TLOCK)) {
        buffer::read_again_after_lock(fd);
    }
    return done;
}

template <class Real>
int control_descriptor(int fd, int command, long argument, Real real) {
    if (intercept::is_library_descriptor(fd)) [[unlikely]] {
        errno = EBADF;  // for programs that try all numbers
        return -1;
    }
    if (intercept::is_in_vfork_child()) {
        return real();
    }
    if (is_lock(command)) [[unlikely]] {
        buffer::record_range_lock(fd);
    }
    if (buffer::is_watched_descriptor(fd)) [[unlikely]] {
        if (is_lock(command)) {
            buffer::record_file_lock(fd);
            const auto* lock = reinterpret_cast<const struct flock*>(argument);
            if (lock != nullptr && lock->l_whence == SEEK_CUR) {
                buffer::set_kernel_offset(fd);
            }
            return lock_file(fd, lock != nullptr && lock->l_type == F_UNLCK, real);
        }
        if (is_lock_request(command)) {
            const buffer::PassThrough around(fd);
            return real();
        }
        if (is_lease_command(command)) {
            buffer::release_file_of_descriptor(fd, "the program has leases or signals of its own on it");
        }
        if (command == F_SETFL) {  // before: what is written after O_APPEND is set goes to the end, wherever it belongs
            buffer::apply_flag_change(fd, static_cast<int>(argument));
        }
        const int done = real();
        if (done >= 0 && is_duplicate(command)) {
            buffer::register_duplicate(fd, done);
        }
        return done;
    }
    if (is_lease_command(command)) {
        buffer::exclude_descriptor(fd);
    }
    const int done = real();
    if (done >= 0 && is_duplicate(command)) {
        if (trace::is_traced_descriptor(fd)) [[unlikely]] {
            trace::record_duplicate(fd, done);
        } else {
            buffer::duplicate_candidate(fd, done);
        }
    }
    return done;
}

/// A descriptor that is sent to another process shares its offset.
void release_passed_descriptors(const struct msghdr* message) noexcept {
    if (message == nullptr || message->msg_controllen == 0 || buffer::candidates == nullptr) {
        return;
    }
    auto* changing = const_cast<struct msghdr*>(message);  // CMSG_NXTHDR asks for it, and changes nothing
    for (struct cmsghdr* part = CMSG_FIRSTHDR(changing); part != nullptr; part = CMSG_NXTHDR(changing, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
                buffer::exclude_descriptor(fd);
                buffer::release_file_of_descriptor(fd, "its descriptor was sent to another process");
            }
        }
    }
}

}  // namespace

int wrap_close(int fd) {
    return close_descriptor(fd, [=] { return NEXT(close)(fd); });
}
int wrap___close(int fd) {
    return close_descriptor(fd, [=] { return NEXT(__close)(fd); });
}
int wrap_close_range(unsigned first, unsigned last, int flags) {
    if ((static_cast<unsigned>(flags) & close_range_cloexec) != 0 || first > last) {
        return NEXT(close_range)(first, last, flags);
    }
    if ((static_cast<unsigned>(flags) & close_range_unshare) != 0) {
        buffer::disable_buffering("the program split its table of descriptors");
    }
    // In pieces around our own.
    return close_descriptor_range(first, last, [=] {
        unsigned from = first;
        int done = 0;
        for (unsigned fd = first; fd <= last && fd < 4096 && done == 0; ++fd) {
            if (intercept::is_library_descriptor(static_cast<int>(fd))) {
                done = fd > from ? NEXT(close_range)(from, fd - 1, flags) : 0;
                from = fd + 1;
            }
        }
        return done == 0 && from <= last ? NEXT(close_range)(from, last, flags) : done;
    });
}
void wrap_closefrom(int first) {
    wrap_close_range(static_cast<unsigned>(std::max(first, 0)), ~0U, 0);
}
int wrap_dup(int fd) {
    return duplicate_to(fd, -1,
                        [=] { return intercept::retry_with_released_descriptors([=] { return NEXT(dup)(fd); }); });
}
int wrap_dup2(int fd, int to) {
    return duplicate_to(fd, to, [=] { return NEXT(dup2)(fd, to); });
}
int wrap___dup2(int fd, int to) {
    return duplicate_to(fd, to, [=] { return NEXT(__dup2)(fd, to); });
}
int wrap_dup3(int fd, int to, int flags) {
    return duplicate_to(fd, to, [=] { return NEXT(dup3)(fd, to, flags); });
}
int wrap_fcntl(int fd, int command, long argument) {
    return control_descriptor(fd, command, argument, [=] { return NEXT(fcntl)(fd, command, argument); });
}
int wrap___fcntl(int fd, int command, long argument) {
    return control_descriptor(fd, command, argument, [=] { return NEXT(__fcntl)(fd, command, argument); });
}
int wrap_fcntl64(int fd, int command, long argument) {
    return control_descriptor(fd, command, argument, [=] { return NEXT(fcntl64)(fd, command, argument); });
}
int wrap_flock(int fd, int operation) {
    constexpr int unlock = 8;  // LOCK_UN
    return buffer::is_watched_descriptor(fd)
               ? lock_file(fd, (operation & unlock) != 0, [=] { return NEXT(flock)(fd, operation); })
               : NEXT(flock)(fd, operation);
}
int wrap_lockf(int fd, int command, off64_t bytes) {
    return lock_range_from_offset(fd, command, [=] { return NEXT(lockf)(fd, command, bytes); });
}
int wrap_lockf64(int fd, int command, off64_t bytes) {
    return lock_range_from_offset(fd, command, [=] { return NEXT(lockf64)(fd, command, bytes); });
}
int wrap_ioctl(int fd, unsigned long request, long argument) {
    if (buffer::is_watched_descriptor(fd)) {
        const buffer::PassThrough around(fd);
        // FICLONE and FICLONERANGE name a second file.
        constexpr unsigned long clone = 0x40049409UL;
        constexpr unsigned long clone_range = 0x4020940DUL;
        if (request == clone || request == clone_range) {
            const long other = request == clone ? argument : *reinterpret_cast<const long*>(argument);
            const buffer::PassThrough source(static_cast<int>(other));
            return NEXT(ioctl)(fd, request, argument);
        }
        return NEXT(ioctl)(fd, request, argument);
    }
    return NEXT(ioctl)(fd, request, argument);
}
ssize_t wrap_sendmsg(int fd, const struct msghdr* message, int flags) {
    release_passed_descriptors(message);
    return NEXT(sendmsg)(fd, message, flags);
}
int wrap_sendmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags) {
    for (unsigned i = 0; messages != nullptr && i < count; ++i) {
        release_passed_descriptors(&messages[i].msg_hdr);
    }
    return NEXT(sendmmsg)(fd, messages, count, flags);
}
