// SPDX-License-Identifier: Apache-2.0
// Registered files: created by the first open, destroyed after the last close.
#include "files/lifecycle.hpp"

#include "cache/pages.hpp"
#include "cache/writeback.hpp"
#include "files/direct_descriptors.hpp"
#include "files/report.hpp"
#include "guards/leases.hpp"
#include "model/candidate_table.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/table.hpp"
#include "modes/modes.hpp"
#include "modes/watching.hpp"
#include "settings/glob.hpp"
#include "system/clock.hpp"
#include "system/text.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <algorithm>
#include <iterator>

namespace sonde::buffer {

namespace {

constexpr std::uint32_t largest_read = 1U << 20U;  ///< bytes

File* create_file(const struct stat& status, settings::Rule& rule, const char* path, bool only_read) noexcept {
    File* file = state.file_slab.allocate();
    if (file == nullptr) {
        return nullptr;
    }
    file->lock.lock();
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->size = status.st_size;
    file->rule = &rule;
    // A read waits for a whole page, so files that are only read get the same memory in more and smaller pages.
    const std::uint32_t pieces = only_read && !rule.direct ? std::max(rule.buffer_bytes / largest_read, 1U) : 1;
    file->pages.page_size = rule.buffer_bytes / pieces;
    file->pages.max_pages = rule.buffer_count * pieces;
    file->pages.prefetch = rule.prefetch * pieces;
    file->preferred_io_bytes = static_cast<std::uint64_t>(status.st_blksize);
    if (!allocate_page_buckets(*file)) {
        file->lock.unlock();
        state.file_slab.deallocate(file);
        return nullptr;
    }
    const std::size_t length = std::min(std::strlen(path), sizeof(file->path) - 1);
    std::memcpy(file->path, path, length);
    file->path[length] = 0;
    if (rule.automatic) {
        begin_watch(*file);
    }
    file->opened_ns = system::now_ns();
    file->is_retry_planned = file->is_watched;
    file->calls_until_retry.store(0, std::memory_order_relaxed);
    file->mode.store(file->is_watched ? Mode::Suspended : Mode::Active, std::memory_order_relaxed);
    File** bucket = &state.files[compute_file_bucket(file->device, file->inode)];
    file->in_bucket = *bucket;
    *bucket = file;
    files_known.fetch_add(1, std::memory_order_relaxed);
    return file;
}

}  // namespace

bool does_file_system_allow_buffering(int fd, struct statfs& file_system_status) noexcept {
    if (raw::call(SYS_fstatfs, fd, raw::pointer_to_number(&file_system_status)) != 0) {
        return false;
    }
    constexpr std::uint32_t strange[] = {MSDOS_SUPER_MAGIC,   PROC_SUPER_MAGIC, SYSFS_MAGIC,      DEBUGFS_MAGIC,
                                         TRACEFS_MAGIC,       SELINUX_MAGIC,    SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,
                                         CGROUP2_SUPER_MAGIC, PSTOREFS_MAGIC,   EFIVARFS_MAGIC,   HUGETLBFS_MAGIC,
                                         BINFMTFS_MAGIC,      BPF_FS_MAGIC,     0x62656570,       0x65735543};
    return std::find(std::begin(strange), std::end(strange), static_cast<std::uint32_t>(file_system_status.f_type)) ==
           std::end(strange);  // the last two: configfs and the control files of FUSE
}

bool is_local_file_system(const struct statfs& file_system_status) noexcept {
    // Numbers of file systems that headers of Linux 4.18 lack: XFS, F2FS, ZFS, bcachefs, JFS, EROFS.
    constexpr std::uint32_t local[] = {
        EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC, 0x58465342, 0xF2F52010,
        0x2FC12FC1,       0xCA451A4E,        0x3153464A,  0xE0F5E1E2};
    return std::find(std::begin(local), std::end(local), static_cast<std::uint32_t>(file_system_status.f_type)) !=
           std::end(local);
}

namespace {

/// Estimates the time saved: calls without a storage call, each at the mean time of a storage call.
std::uint64_t compute_gained_ns(const TransferCounts& direction) noexcept {
    return direction.storage_calls > 0 ? direction.hits * (direction.storage_ns / direction.storage_calls) : 0;
}

}  // namespace

void destroy_file(File& file) noexcept {
    File** link = &state.files[compute_file_bucket(file.device, file.inode)];
    while (*link != &file) {
        link = &(*link)->in_bucket;
    }
    *link = file.in_bucket;
    files_known.fetch_sub(1, std::memory_order_relaxed);
    if (file.append.has_foreign_growth && file.release_reason == nullptr) {
        file.release_reason = why_grown;
    }
    report_file(file);
    record_benefit(compute_gained_ns(file.statistics.read) + compute_gained_ns(file.statistics.write));
    release_guard(file);
    drop_all_pages(file);
    free_page_buckets(file);
    close_direct_descriptors_of(file);
    file.mode.store(Mode::Unused, std::memory_order_relaxed);
    file.device = 0;
    file.inode = 0;
    file.descriptors = {};
    file.active_calls = {};
    file.errors = {};
    file.profitability = {};
    file.append = {};
    file.has_posix_locks = false;
    file.is_inherited = file.has_release_request = file.is_claimed = file.is_write_through = file.is_watched =
        file.is_shared = false;
    file.mpi_handle = nullptr;
    file.is_retry_planned = false;
    file.watch = {};
    file.choice = {};
    file.accepted_since_check = file.space_checked_ns = 0;
    file.guard = file.last_guard = Guard::None;
    file.lease = {};
    file.is_local = false;
    file.statistics = {};
    file.release_reason = nullptr;
    file.rule = nullptr;
    ++file.generation;
    file.lock.unlock();
    // A call that a handler of the program left by longjmp counts as on its way for ever: the next file in this object
    // could not be woken.
    if (file.pass_through_calls.load(std::memory_order_seq_cst) == 0) {
        state.file_slab.deallocate(&file);
    }
}

File* find_or_create_file(int fd, const struct stat& status, settings::Rule* rule, const char* path,
                          bool only_read) noexcept {
    File* file = find_file_in_locked_table(status.st_dev, status.st_ino);
    if (file != nullptr) {
        return file;
    }
    struct statfs file_system_status {};
    file = rule != nullptr && does_file_system_allow_buffering(fd, file_system_status)
               ? create_file(status, *rule, path, only_read)
               : nullptr;
    if (file != nullptr) {
        file->is_local = is_local_file_system(file_system_status);
    }
    return file;
}

}  // namespace sonde::buffer
