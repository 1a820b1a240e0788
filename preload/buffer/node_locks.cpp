// SPDX-License-Identifier: Apache-2.0
// Who else on this node uses a file. Each process that buffers a file holds a lock on two bytes of one small file in
// memory: the kernel gives it back however the process ends. Byte 2h is held by those who buffer (shared by readers,
// alone by a writer); byte 2h + 1 by those who came later and could not, as a sign for the others to stop.
#include "buffer/node_locks.hpp"

#include "buffer/state.hpp"
#include "buffer/states.hpp"
#include "system/high_descriptor.hpp"
#include "system/own_file.hpp"
#include "system/text.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace sonde::buffer {

namespace {

system::Lock opening;
int lock_file = -1;
bool tried = false;

/// -1 where there is no shared memory: then nobody is noticed.
int locks() noexcept {
    system::Hold hold(opening);
    if (!tried) {
        tried = true;
        system::Text name;
        name << "/dev/shm/sonde-preload-" << std::uint64_t{geteuid()} << '\0';
        const long fd = system::open_own_file(name.data(), O_RDWR, 0600);
        state.others_unseen = fd < 0;
        if (fd >= 0) {
            lock_file = system::high_duplicate(static_cast<int>(fd));
            raw::call(SYS_close, fd);
            note_private(lock_file, true);
        }
    }
    return lock_file;
}

/// Two files in one place make each other unbuffered, no more; with 2^60 places that will not happen.
off64_t place_of(const File& file) noexcept {
    const std::uint64_t mixed = (static_cast<std::uint64_t>(file.inode) * 0x9E3779B97F4A7C15ULL) ^
                                (static_cast<std::uint64_t>(file.device) * 0xC2B2AE3D27D4EB4FULL);
    return static_cast<off64_t>((mixed >> 4U) << 1U);
}

bool ask(int command, short type, off64_t at, struct flock64& answer) noexcept {
    answer = {};
    answer.l_type = type;
    answer.l_whence = SEEK_SET;
    answer.l_start = at;
    answer.l_len = 1;
    return raw::call(SYS_fcntl, locks(), command, raw::number(&answer)) == 0;
}

}  // namespace

bool claim(const File& file, bool writes) noexcept {
    struct flock64 answer {};
    const off64_t place = place_of(file);
    if (locks() < 0 || (!visited(file) && ask(F_OFD_SETLK, writes ? F_WRLCK : F_RDLCK, place, answer))) {
        return true;
    }
    ask(F_OFD_SETLK, F_RDLCK, place + 1, answer);
    return false;
}

void disclaim(const File& file) noexcept {
    struct flock64 answer {};
    if (locks() >= 0) {
        ask(F_OFD_SETLK, F_UNLCK, place_of(file), answer);
        ask(F_OFD_SETLK, F_UNLCK, place_of(file) + 1, answer);
    }
}

bool visited(const File& file) noexcept {
    struct flock64 answer {};
    return locks() >= 0 && ask(F_OFD_GETLK, F_WRLCK, place_of(file) + 1, answer) && answer.l_type != F_UNLCK;
}

void yield_to_others(File& file) noexcept {
    if (file.mode.load(std::memory_order_relaxed) == Mode::Active && visited(file)) {
        through_for_good(file, "another process on this node uses it too");
    }
}

void node_locks_moved(int from, int to) noexcept {
    system::Hold hold(opening);
    lock_file = lock_file == from ? to : lock_file;
}

/// The locks belong to the parent's open file, and stay its own; the child opens one for itself.
void node_locks_after_fork() noexcept {
    opening.reset();
    if (lock_file >= 0) {
        note_private(lock_file, false);
        raw::call(SYS_close, lock_file);
    }
    lock_file = -1;
    tried = false;
}

}  // namespace sonde::buffer
