// SPDX-License-Identifier: Apache-2.0
// The files that are known: made by the first open, unmade after the last close.
#include "buffer/files.hpp"

#include "buffer/brief_lives.hpp"
#include "buffer/direct.hpp"
#include "buffer/dividing.hpp"
#include "buffer/flushing.hpp"
#include "buffer/node_locks.hpp"
#include "buffer/pages.hpp"
#include "buffer/report.hpp"
#include "buffer/state.hpp"
#include "buffer/states.hpp"
#include "buffer/table.hpp"
#include "buffer/watching.hpp"
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

std::uint32_t bucket_of(dev_t device, ino_t inode) noexcept {
    const std::uint64_t mixed =
        (static_cast<std::uint64_t>(inode) ^ (static_cast<std::uint64_t>(device) << 20U)) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::uint32_t>(mixed >> 40U) % State::file_buckets;
}

bool status(int fd, struct stat& got) noexcept {
    return raw::call(SYS_fstat, fd, raw::number(&got)) == 0;
}

std::int64_t nanoseconds(const timespec& time) noexcept {
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

/// The table of files must be locked; the file comes back locked.
File* known(dev_t device, ino_t inode) noexcept {
    for (File* file = state.files[bucket_of(device, inode)]; file != nullptr; file = file->in_bucket) {
        if (file->device == device && file->inode == inode) {
            file->lock.lock();
            return file;
        }
    }
    return nullptr;
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
    if (rule.automatic) {
        begin_watch(*file);
    }
    file->opened_ns = system::now_ns();
    file->mode.store(Mode::Active, std::memory_order_relaxed);
    File** bucket = &state.files[bucket_of(file->device, file->inode)];
    file->in_bucket = *bucket;
    *bucket = file;
    files_known.fetch_add(1, std::memory_order_relaxed);
    return file;
}

}  // namespace

bool file_system_allows(int fd) noexcept {
    struct statfs about {};
    return file_system_allows(fd, about);
}

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

void unmake_file(File& file) noexcept {
    File** at = &state.files[bucket_of(file.device, file.inode)];
    while (*at != &file) {
        at = &(*at)->in_bucket;
    }
    *at = file.in_bucket;
    files_known.fetch_sub(1, std::memory_order_relaxed);
    if (file.appended.grew && file.why_through == nullptr) {
        file.why_through = why_grown;
    }
    report_file(file);
    note_life(file);
    disclaim(file);
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
    file.inherited = file.sign = file.write_through = file.watching = file.shared = false;
    file.handle = nullptr;
    file.dormant = false;
    file.watch = {};
    file.name = 0;
    file.choice = {};
    file.accepted_since_check = 0;
    file.statistics = {};
    file.why_through = nullptr;
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
        !status(fd, got) || got.st_nlink == 0 || file.dirty.first != nullptr ||
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

File* known_or_new_file(int fd, const struct stat& got, settings::Rule* rule, const char* path, bool only_read,
                        bool brief) noexcept {
    File* file = known(got.st_dev, got.st_ino);
    if (file != nullptr) {
        if (file->lazy.closed) {
            reopen_lazy(*file, got);
        }
        return file;
    }
    struct statfs about {};
    file =
        rule != nullptr && (brief || file_system_allows(fd, about)) ? make_file(got, *rule, path, only_read) : nullptr;
    if (file != nullptr && !brief) {
        file->write_through = space_is_low(*file, about);
        file->space_seen = true;
    }
    return file;
}

File* locked_file(int fd, Description*& description) noexcept {
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
    const Description* description = in_table(fd) ? table[fd].load(std::memory_order_acquire) : nullptr;
    const File* file = description != nullptr ? description->file.load(std::memory_order_acquire) : nullptr;
    return file != nullptr && file->mode.load(std::memory_order_acquire) == Mode::Active;
}

File* find_file(dev_t device, ino_t inode) noexcept {
    system::Hold hold(state.files_lock);
    return known(device, inode);
}

void choose_descriptors(File& file) noexcept {
    file.ends.reader = file.ends.writer = -1;
    file.appended.all = false;
    for (Description* one = file.ends.descriptions; one != nullptr; one = one->next) {
        if (one->reads) {
            file.ends.reader = one->fd;
        }
        if (one->writes) {
            file.ends.writer = one->fd;
            file.appended.all |= one->appends;
        }
    }
}

std::int64_t size_below(int fd) noexcept {
    struct stat got {};
    return status(fd, got) ? got.st_size : -1;
}

void refresh_size(File& file) noexcept {
    struct stat got {};
    if (file.ends.descriptions == nullptr || !status(file.ends.descriptions->fd, got)) {
        return;
    }
    if (file.appended.all) {
        file.appended.grew |= file.turns.in_flight == 0 && got.st_size != file.appended.landed;
    } else if (got.st_size > file.size) {
        file.size = got.st_size;
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
