// SPDX-License-Identifier: Apache-2.0
// The files that are known: made by the first open, unmade after the last close.
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
#include "modes/page_sizes.hpp"
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

std::int64_t nanoseconds(const timespec& time) noexcept {
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

File* make_file(const struct stat& got, settings::Rule& rule, const char* path, bool only_read) noexcept {
    File* file = state.file_slab.take();
    if (file == nullptr) {
        return nullptr;
    }
    file->lock.lock();
    file->device = got.st_dev;
    file->inode = got.st_ino;
    file->size = got.st_size;
    file->rule = &rule;
    file->held.page_size = rule.size;
    file->held.limit = rule.count;
    file->held.prefetch = rule.prefetch;
    if (only_read) {
        divide_pages(*file);
    }
    file->block = static_cast<std::uint64_t>(got.st_blksize);
    if (!make_buckets(*file)) {
        file->lock.unlock();
        state.file_slab.give(file);
        return nullptr;
    }
    const std::size_t length = std::min(std::strlen(path), sizeof(file->path) - 1);
    std::memcpy(file->path, path, length);
    file->path[length] = 0;
    if (rule.automatic && !rule.always) {
        begin_watch(*file);
    }
    constexpr std::uint32_t calls_for_report = 3;
    file->timed_calls = rule.verbose && !rule.always && !rule.direct ? calls_for_report : 0;
    file->opened_ns = system::now_ns();
    file->mode.store(Mode::Active, std::memory_order_relaxed);
    File** bucket = &state.files[bucket_of(file->device, file->inode)];
    file->in_bucket = *bucket;
    *bucket = file;
    files_known.fetch_add(1, std::memory_order_relaxed);
    return file;
}

}  // namespace

bool file_system_allows(int fd, struct statfs& about) noexcept {
    if (raw::call(SYS_fstatfs, fd, raw::number(&about)) != 0) {
        return false;
    }
    constexpr std::uint32_t strange[] = {MSDOS_SUPER_MAGIC,   PROC_SUPER_MAGIC, SYSFS_MAGIC,      DEBUGFS_MAGIC,
                                         TRACEFS_MAGIC,       SELINUX_MAGIC,    SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,
                                         CGROUP2_SUPER_MAGIC, PSTOREFS_MAGIC,   EFIVARFS_MAGIC,   HUGETLBFS_MAGIC,
                                         BINFMTFS_MAGIC,      BPF_FS_MAGIC,     0x62656570,       0x65735543};
    return std::find(std::begin(strange), std::end(strange), static_cast<std::uint32_t>(about.f_type)) ==
           std::end(strange);  // the last two: configfs and the control files of FUSE
}

bool is_local_file_system(const struct statfs& about) noexcept {
    // Numbers of file systems that headers of Linux 4.18 lack: XFS, F2FS, ZFS, bcachefs, JFS, EROFS.
    constexpr std::uint32_t local[] = {
        EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC, 0x58465342, 0xF2F52010,
        0x2FC12FC1,       0xCA451A4E,        0x3153464A,  0xE0F5E1E2};
    return std::find(std::begin(local), std::end(local), static_cast<std::uint32_t>(about.f_type)) != std::end(local);
}

namespace {

/// Calls that needed none below, each at the price of one of those that were made.
std::uint64_t gained_ns(const Direction& direction) noexcept {
    return direction.below > 0 ? direction.hits * (direction.below_ns / direction.below) : 0;
}

}  // namespace

void unmake_file(File& file) noexcept {
    File** at = &state.files[bucket_of(file.device, file.inode)];
    while (*at != &file) {
        at = &(*at)->in_bucket;
    }
    *at = file.in_bucket;
    files_known.fetch_sub(1, std::memory_order_relaxed);
    if (file.appended.grew && file.why_released == nullptr) {
        file.why_released = why_grown;
    }
    report_file(file);
    note_benefit(gained_ns(file.statistics.read) + gained_ns(file.statistics.write));
    release_guard(file);
    drop_all(file);
    free_buckets(file);
    remove_direct(file);
    file.mode.store(Mode::Gone, std::memory_order_relaxed);
    file.device = 0;
    file.inode = 0;
    file.ends = {};
    file.turns = {};
    file.errors = {};
    file.payoff = {};
    file.appended = {};
    file.lazy = {};
    file.locking = {};
    file.locked_in_parts = false;
    file.held.divided = file.held.small = false;
    file.inherited = file.sign = file.claimed = file.write_through = file.watching = file.shared = false;
    file.handle = nullptr;
    file.dormant = false;
    file.watch = {};
    file.timed_calls = 0;
    file.choice = {};
    file.accepted_since_check = file.space_checked_ns = 0;
    file.guard = file.last_guard = Guard::None;
    file.lease = {};
    file.is_local = false;
    file.statistics = {};
    file.why_released = nullptr;
    file.rule = nullptr;
    ++file.generation;
    file.lock.unlock();
    // A call that a handler of the program left by longjmp counts as on its way for ever: the next file in this object
    // could not be woken.
    if (file.passing.load(std::memory_order_seq_cst) == 0) {
        state.file_slab.give(&file);
    }
}

namespace {

/// Pages of a file that was closed lazily are good only when nobody has changed it since.
void reopen_lazy(File& file, const struct stat& got) noexcept {
    file.lazy.closed = false;
    if (nanoseconds(got.st_mtim) != file.lazy.mtime_ns || nanoseconds(got.st_ctim) != file.lazy.ctime_ns ||
        got.st_size != file.size) {
        drop_all(file);
    }
    file.size = got.st_size;
}

}  // namespace

bool change_would_show(const struct stat& got, std::uint64_t now_ns) noexcept {
    if (got.st_mtim.tv_nsec != 0 || got.st_ctim.tv_nsec != 0) {
        return true;
    }
    const auto now_s = static_cast<std::int64_t>(now_ns / 1'000'000'000);
    return now_s - got.st_mtim.tv_sec > 2 && now_s - got.st_ctim.tv_sec > 2;
}

bool keep_for_reopening(File& file, int fd) noexcept {
    struct stat got {};
    if (!file.rule->lazy_close || file.shared || file.mode.load(std::memory_order_relaxed) != Mode::Active ||
        !read_status(fd, got) || got.st_nlink == 0 || file.dirty.first != nullptr ||
        !change_would_show(got, system::clock_ns(CLOCK_REALTIME))) {
        return false;
    }
    file.lazy.closed = true;
    file.lazy.mtime_ns = nanoseconds(got.st_mtim);
    file.lazy.ctime_ns = nanoseconds(got.st_ctim);
    report_file(file);
    file.statistics = {};
    file.locking = {};
    file.locked_in_parts = false;
    return true;
}

File* known_or_new_file(int fd, const struct stat& got, settings::Rule* rule, const char* path,
                        bool only_read) noexcept {
    File* file = known_file(got.st_dev, got.st_ino);
    if (file != nullptr) {
        if (file->lazy.closed) {
            reopen_lazy(*file, got);
        }
        return file;
    }
    struct statfs about {};
    file = rule != nullptr && file_system_allows(fd, about) ? make_file(got, *rule, path, only_read) : nullptr;
    if (file != nullptr) {
        file->is_local = is_local_file_system(about);
    }
    return file;
}

}  // namespace sonde::buffer
