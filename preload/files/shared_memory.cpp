// SPDX-License-Identifier: Apache-2.0
#include "files/shared_memory.hpp"

#include "files/processes.hpp"
#include "model/state.hpp"
#include "model/table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <atomic>
#include <cstdint>

namespace sonde::buffer {

namespace {

/// A file. Numbers of files that were removed are given to new ones, the time of birth tells them apart: MPI libraries
/// map files of theirs and remove them at once.
struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t born_s = 0;  ///< 0: unknown on this file system
    std::uint32_t born_ns = 0;

    bool operator==(const FileIdentity&) const = default;
};

bool read_identity(int fd, FileIdentity& file) noexcept {
    struct statx status {};
    if (raw::call(SYS_statx, fd, raw::pointer_to_number(""), AT_EMPTY_PATH, STATX_INO | STATX_BTIME,
                  raw::pointer_to_number(&status)) == 0) {
        file = {(std::uint64_t{status.stx_dev_major} << 32U) | status.stx_dev_minor, status.stx_ino, 0, 0};
        if ((status.stx_mask & STATX_BTIME) != 0) {
            file.born_s = status.stx_btime.tv_sec;
            file.born_ns = status.stx_btime.tv_nsec;
        }
        return true;
    }
    struct stat fstat_status {};
    if (raw::call(SYS_fstat, fd, raw::pointer_to_number(&fstat_status)) != 0) {
        return false;
    }
    file = {fstat_status.st_dev, fstat_status.st_ino, 0, 0};
    return true;
}

constexpr unsigned max_mapped = 64;
constinit FileIdentity mapped_identities[max_mapped] = {};
constinit std::atomic<unsigned> mapped_files{0};  ///< noted so far; the oldest ones are overwritten
constinit std::atomic<bool> shares_memory{false};
constinit std::atomic<bool> shares_anonymous_memory{false};  ///< memory that reaches others by fork alone
constinit system::Lock mapped_lock;

}  // namespace

void record_shared_map(int fd) noexcept {
    if (table == nullptr) {
        return;
    }
    const system::Critical critical;
    shares_memory.store(true, std::memory_order_relaxed);
    if (fd < 0) {
        shares_anonymous_memory.store(true, std::memory_order_relaxed);
    }
    FileIdentity file;
    if (fd < 0 || !read_identity(fd, file)) {
        return;
    }
    system::LockGuard lock_guard(mapped_lock);
    const unsigned number = mapped_files.load(std::memory_order_relaxed);
    mapped_identities[number % max_mapped] = file;
    mapped_files.store(number + 1, std::memory_order_relaxed);
}

void record_range_lock(int fd) noexcept {
    if (mapped_files.load(std::memory_order_relaxed) == 0 || state.is_disabled.load(std::memory_order_relaxed)) {
        return;
    }
    const system::Critical critical;
    FileIdentity file;
    if (!read_identity(fd, file)) {
        return;
    }
    bool is_mapped = false;
    {
        system::LockGuard lock_guard(mapped_lock);
        for (const FileIdentity& entry : mapped_identities) {
            is_mapped |= entry == file;
        }
    }
    if (is_mapped) {
        disable_buffering(
            "the program locks parts of a file that it has mapped to write, as processes of a database do");
    }
}

void check_shared_memory_after_fork(bool child) noexcept {
    if (child) {
        mapped_lock.reset();
    }
    if ((child ? shares_memory : shares_anonymous_memory).load(std::memory_order_relaxed)) {
        disable_buffering(child ? "it shares memory with the process that forked it, as processes of a database do"
                                : "it shares memory with a process that it forked, as processes of a database do");
    }
}

}  // namespace sonde::buffer
