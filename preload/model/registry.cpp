// SPDX-License-Identifier: Apache-2.0
#include "model/registry.hpp"

#include "model/state.hpp"
#include "model/table.hpp"

namespace sonde::buffer {

std::uint32_t compute_file_bucket(dev_t device, ino_t inode) noexcept {
    const std::uint64_t mixed =
        (static_cast<std::uint64_t>(inode) ^ (static_cast<std::uint64_t>(device) << 20U)) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::uint32_t>(mixed >> 40U) % BufferState::file_buckets;
}

bool read_status(int fd, struct stat& status) noexcept {
    return raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) == 0;
}

/// Requires the lock of the table of files. Returns the file locked.
File* find_file_in_locked_table(dev_t device, ino_t inode) noexcept {
    for (File* file = state.files[compute_file_bucket(device, inode)]; file != nullptr; file = file->in_bucket) {
        if (file->device == device && file->inode == inode) {
            file->lock.lock();
            return file;
        }
    }
    return nullptr;
}

File* lock_file_of_descriptor(int fd, Description*& description) noexcept {
    while (true) {
        description = table[fd].load(std::memory_order_acquire);
        if (description == nullptr) {
            return nullptr;
        }
        File* file = description->file.load(std::memory_order_acquire);
        if (file == nullptr) {
            continue;  // being taken apart by another thread
        }
        file->lock.lock();
        if (table[fd].load(std::memory_order_relaxed) == description &&
            description->file.load(std::memory_order_relaxed) == file) {
            return file;
        }
        file->lock.unlock();
    }
}

bool is_active(int fd) noexcept {
    const Description* description = is_registered_descriptor(fd) ? table[fd].load(std::memory_order_acquire) : nullptr;
    const File* file = description != nullptr ? description->file.load(std::memory_order_acquire) : nullptr;
    return file != nullptr && file->mode.load(std::memory_order_acquire) == Mode::Active;
}

File* find_file(dev_t device, ino_t inode) noexcept {
    system::LockGuard lock_guard(state.files_lock);
    return find_file_in_locked_table(device, inode);
}

void choose_file_descriptors(File& file) noexcept {
    file.descriptors.read_fd = file.descriptors.write_fd = -1;
    file.append.only_appends = false;
    for (Description* description = file.descriptors.descriptions; description != nullptr;
         description = description->next) {
        if (description->reads) {
            file.descriptors.read_fd = description->fd;
        }
        if (description->writes) {
            file.descriptors.write_fd = description->fd;
            file.append.only_appends |= description->appends;
        }
    }
}

std::int64_t read_size_from_kernel(int fd) noexcept {
    struct stat status {};
    return read_status(fd, status) ? status.st_size : -1;
}

void update_size_from_kernel(File& file) noexcept {
    struct stat status {};
    if (file.descriptors.descriptions == nullptr || !read_status(file.descriptors.descriptions->fd, status)) {
        return;
    }
    if (file.append.only_appends) {
        file.append.has_foreign_growth |=
            file.active_calls.in_storage == 0 && status.st_size != file.append.kernel_size;
    } else if (status.st_size > file.size) {
        file.size = status.st_size;
    }
}

void for_each_file(void (*visit)(File&), std::int64_t lock_limit_ns) noexcept {
    for (File* first : state.files) {
        for (File* file = first; file != nullptr; file = file->in_bucket) {
            if (lock_limit_ns < 0) {
                file->lock.lock();
            } else if (!file->lock.try_lock(lock_limit_ns)) {
                continue;
            }
            visit(*file);
            file->lock.unlock();
        }
    }
}

}  // namespace sonde::buffer
