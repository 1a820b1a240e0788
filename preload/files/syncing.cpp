// SPDX-License-Identifier: Apache-2.0
// Writes delayed data to the kernel for calls that need it.
#include "files/syncing.hpp"

#include "cache/writeback.hpp"
#include "files/candidates.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"
#include "modes/mpi_sharing.hpp"

namespace sonde::buffer {

int flush_descriptor(int fd) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    File* file = is_registered_descriptor(fd) ? lock_file_of_descriptor(fd, description) : nullptr;
    if (file == nullptr) {
        return 0;
    }
    int error = 0;
    ++file->statistics.syncs;
    if (file->is_shared) {
        drop_pages_read_before(*file);
    } else if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
        flush_file(*file);
        release_if_grown(*file);
    }
    consume_error(*file, *description, error);
    file->lock.unlock();
    return error;
}

void flush_to_kernel(int fd) noexcept {
    const system::Critical critical;
    consider_unseen_descriptor(fd);
    Description* description = nullptr;
    if (File* file = is_active(fd) ? lock_file_of_descriptor(fd, description) : nullptr) {
        flush_file(*file);
        release_if_grown(*file);
        file->lock.unlock();
    }
}

void flush_inode(dev_t device, ino_t inode) noexcept {
    const system::Critical critical;
    if (File* file = find_file(device, inode)) {
        flush_file(*file);
        release_if_grown(*file);
        file->lock.unlock();
    }
}

void flush_all() noexcept {
    const system::Critical critical;
    system::LockGuard lock_guard(state.files_lock);
    for_each_file([](File& file) { flush_file(file); });
}

void require_space_check() noexcept {
    const system::Critical critical;
    system::LockGuard lock_guard(state.files_lock);
    for_each_file([](File& file) { file.space_checked_ns = 0; });
}

bool has_dirty_pages(int fd) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    File* file = is_registered_descriptor(fd) ? lock_file_of_descriptor(fd, description) : nullptr;
    if (file == nullptr) {
        return false;
    }
    const bool dirty = file->dirty.first != nullptr || file->active_calls.is_write_in_flight;
    file->lock.unlock();
    return dirty;
}

bool has_any_dirty_file() noexcept {
    return state.undelivered_pages.load(std::memory_order_acquire) != 0;
}

bool is_registered_inode(dev_t device, ino_t inode) noexcept {
    const system::Critical critical;
    File* file = find_file(device, inode);
    if (file == nullptr) {
        return false;
    }
    file->lock.unlock();
    return true;
}

void set_kernel_offset(int fd) noexcept {
    const system::Critical critical;
    Description* description = nullptr;
    File* file = is_active(fd) ? lock_file_of_descriptor(fd, description) : nullptr;
    if (file != nullptr) {
        if (file->mode.load(std::memory_order_relaxed) == Mode::Active) {
            raw::call(SYS_lseek, fd, description->offset, SEEK_SET);
        }
        file->lock.unlock();
    }
}

}  // namespace sonde::buffer
