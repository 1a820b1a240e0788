// SPDX-License-Identifier: Apache-2.0
// Detects other users of a file on this node. Each process that buffers a file holds a lock on two bytes of one small
// file in memory: the kernel releases it however the process ends. Buffering processes lock the first byte (shared
// by readers, exclusive by a writer). Processes that came later and could not lock it lock the second byte, far from
// it, as a sign for the others to stop.
#include "guards/node_locks.hpp"

#include "model/state.hpp"
#include "model/table.hpp"
#include "system/high_descriptor.hpp"
#include "system/own_file.hpp"
#include "system/text.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <initializer_list>

namespace sonde::buffer {

namespace {

constinit system::Lock lock_file_lock;
constinit std::atomic<int> lock_file{-1};
constinit std::atomic<bool> is_open_attempted{false};

constexpr int max_names = 64;

/// One file for all processes of a user. Somebody else may have made one of its name before us, and may remove it
/// again: there are several names, and one that is ours already goes before one that is free. A negative errno when
/// there is none.
long open_lock_file() noexcept {
    long fd = -1;
    for (const int make : {0, O_CREAT}) {
        for (int number = 0; number < max_names && fd < 0; ++number) {
            system::Text name;
            name << "/dev/shm/sonde-preload-" << std::uint64_t{geteuid()};
            if (number > 0) {
                name << '-' << number;
            }
            name << '\0';
            fd = system::open_own_file(name.data(), O_RDWR | make, 0600);
        }
    }
    return fd;
}

/// -1 without shared memory: then other processes are not noticed.
int open_lock_file_once() noexcept {
    if (is_open_attempted.load(std::memory_order_acquire)) {
        return lock_file.load(std::memory_order_relaxed);
    }
    system::LockGuard lock_guard(lock_file_lock);
    if (!is_open_attempted.load(std::memory_order_relaxed)) {
        const long fd = open_lock_file();
        state.cannot_detect_others = fd < 0;
        if (fd >= 0) {
            lock_file = system::duplicate_to_high_descriptor(static_cast<int>(fd));
            raw::call(SYS_close, fd);
            mark_own_descriptor(lock_file);
        }
        is_open_attempted.store(true, std::memory_order_release);
    }
    return lock_file;
}

constexpr std::uint64_t record_offsets = 1ULL << 60U;
constexpr off64_t release_request_bit = record_offsets;

/// Files that were made one after the other have neighboring places: the kernel keeps neighboring locks as one, and
/// goes through all that there are with each call. Two files in one place make each other unbuffered, no more.
off64_t compute_record_offset(const File& file) noexcept {
    const std::uint64_t begin = static_cast<std::uint64_t>(file.device) * 0xC2B2AE3D27D4EB4FULL;
    return static_cast<off64_t>((begin + static_cast<std::uint64_t>(file.inode)) % record_offsets);
}

bool call_record_lock(int command, short type, off64_t offset, struct flock64& answer) noexcept {
    answer = {};
    answer.l_type = type;
    answer.l_whence = SEEK_SET;
    answer.l_start = offset;
    answer.l_len = 1;
    return raw::call(SYS_fcntl, open_lock_file_once(), command, raw::pointer_to_number(&answer)) == 0;
}

}  // namespace

bool claim_file_on_node(File& file, bool writes) noexcept {
    struct flock64 answer {};
    const off64_t position = compute_record_offset(file);
    if (open_lock_file_once() < 0) {
        return true;
    }
    if (!is_claimed_by_others(file) && call_record_lock(F_OFD_SETLK, writes ? F_WRLCK : F_RDLCK, position, answer)) {
        file.is_claimed = true;
        return true;
    }
    file.has_release_request = call_record_lock(F_OFD_SETLK, F_RDLCK, position + release_request_bit, answer);
    return false;
}

void withdraw_claim(const File& file) noexcept {
    struct flock64 answer {};
    if (file.is_claimed) {
        call_record_lock(F_OFD_SETLK, F_UNLCK, compute_record_offset(file), answer);
    }
    if (file.has_release_request) {
        call_record_lock(F_OFD_SETLK, F_UNLCK, compute_record_offset(file) + release_request_bit, answer);
    }
}

bool is_claimed_by_others(const File& file) noexcept {
    struct flock64 answer {};
    return open_lock_file_once() >= 0 &&
           call_record_lock(F_OFD_GETLK, F_WRLCK, compute_record_offset(file) + release_request_bit, answer) &&
           answer.l_type != F_UNLCK;
}

void record_moved_lock_file(int from, int to) noexcept {
    system::LockGuard lock_guard(lock_file_lock);
    if (lock_file == from) {
        lock_file = to;
    }
}

bool close_node_locks() noexcept {
    system::LockGuard lock_guard(lock_file_lock);
    if (lock_file < 0) {
        return false;
    }
    unmark_own_descriptor(lock_file);
    raw::call(SYS_close, lock_file);
    lock_file = -1;  // is_open_attempted stays true, so no later call opens the file again
    return true;
}

/// The locks stay with the parent's open file description; the child opens its own.
void reset_node_locks_after_fork() noexcept {
    lock_file_lock.reset();
    if (lock_file >= 0) {
        unmark_own_descriptor(lock_file);
        raw::call(SYS_close, lock_file);
    }
    lock_file = -1;
    is_open_attempted = false;
}

}  // namespace sonde::buffer
