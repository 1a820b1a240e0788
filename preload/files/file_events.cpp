// SPDX-License-Identifier: Apache-2.0
#include "files/file_events.hpp"

#include "model/registry.hpp"
#include "model/table.hpp"
#include "modes/modes.hpp"
#include "modes/mpi_sharing.hpp"

#include <cerrno>

namespace sonde::buffer {

void release_file_of_descriptor(int fd, const char* reason) noexcept {
    const system::Critical critical;
    if (!is_registered_descriptor(fd)) {
        return;
    }
    Description* description = nullptr;
    if (File* file = lock_file_of_descriptor(fd, description)) {
        release_file(*file, reason);
        file->lock.unlock();
    }
}

void release_file_of_inode(dev_t device, ino_t inode, const char* reason) noexcept {
    const system::Critical critical;
    if (File* file = find_file(device, inode)) {
        release_file(*file, reason);
        file->lock.unlock();
    }
}

void record_file_lock(int fd) noexcept {
    const system::Critical critical;
    Description* description = is_registered_descriptor(fd) ? table[fd].load(std::memory_order_acquire) : nullptr;
    const File* file = description != nullptr ? description->file.load(std::memory_order_acquire) : nullptr;
    if (file == nullptr || file->has_posix_locks.load(std::memory_order_relaxed)) {
        return;  // databases lock at each step: the first time is enough
    }
    if (File* locked = lock_file_of_descriptor(fd, description)) {
        locked->has_posix_locks = true;
        locked->lock.unlock();
    }
}

void read_again_after_lock(int fd) noexcept {
    const system::Critical critical;
    const int saved_errno = errno;
    Description* description = nullptr;
    if (File* file = is_active(fd) ? lock_file_of_descriptor(fd, description) : nullptr) {
        if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
            ++file->statistics.interruptions;
            if (file->guard != Guard::Lease) {  // somebody else can have changed it
                drop_pages_read_before(*file);
                release_if_grown(*file);
            }
        }
        file->lock.unlock();
    }
    errno = saved_errno;
}

}  // namespace sonde::buffer
