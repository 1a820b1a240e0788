// SPDX-License-Identifier: Apache-2.0
// Write-back of dirty pages in the order in which they became dirty, one at a time: what a killed process
// leaves behind of a file written from front to back is a beginning of what it wrote.
#include "cache/writeback.hpp"

#include "cache/page_transfer.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"
#include "system/clock.hpp"

#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde::buffer {

int write_oldest(File& file, bool program_waits) noexcept {
    if (file.dirty.first->activity == PageActivity::Loading) {  // its gaps are being filled; then it is our turn
        wait_for_change(file);
        return 0;
    }
    PageTransfer job;
    job.begin_write(file);
    UnlockedScope unlocked(file, program_waits ? &file.statistics.wait_ns : nullptr);
    job.execute_all();
    unlocked.end();
    return job.finish(unlocked.elapsed_ns);
}

int flush_file(File& file) noexcept {
    // Writes only as many pages as are dirty now, because another thread may dirty new ones as fast as we write.
    std::uint32_t attempts = file.dirty.pages + 1;
    while (file.active_calls.is_write_in_flight || (file.dirty.first != nullptr && attempts > 0)) {
        if (file.active_calls.is_write_in_flight || file.dirty.first->activity == PageActivity::Loading) {
            wait_for_change(file);
            continue;
        }
        --attempts;
        const int error = write_oldest(file, true);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

namespace {

/// Free space that is reserved for writes of all processes while the library delays data.
constexpr std::uint64_t reserve_bytes = 4ULL << 30U;
constexpr long quotactl_fd = 443, get_user_quota = 0x80000700;  // Linux 5.14; + 1: of a group, + 2: of a project

struct Quota {  // struct if_dqblk
    std::uint64_t hard_blocks, soft_blocks, bytes, hard_inodes, soft_inodes, inodes, block_time, inode_time;
    std::uint32_t valid;
};

bool is_quota_near_limit(const Quota& quota) noexcept {
    constexpr std::uint64_t block = 1024;
    for (const std::uint64_t limit : {quota.hard_blocks, quota.soft_blocks}) {
        if (limit != 0 && limit * block < quota.bytes + reserve_bytes) {
            return true;
        }
    }
    return false;
}

/// Only root may ask for the quota of a project. The free space that the kernel states for its folder takes it into
/// account.
bool is_folder_low(const File& file) noexcept {
    char folder[sizeof(file.path)];
    std::memcpy(folder, file.path, sizeof(folder));
    char* slash = std::strrchr(folder, '/');
    struct statfs file_system_status {};
    if (slash == nullptr) {
        return true;
    }
    slash[1] = '\0';
    return raw::call(SYS_statfs, raw::pointer_to_number(folder), raw::pointer_to_number(&file_system_status)) != 0 ||
           is_space_low(file_system_status);
}

bool is_quota_low(const File& file) noexcept {
    const int fd = file.descriptors.write_fd;
    struct stat status {};
    if (raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) != 0) {
        return true;
    }
    struct fsxattr attributes {};
    raw::call(SYS_ioctl, fd, static_cast<long>(FS_IOC_FSGETXATTR), raw::pointer_to_number(&attributes));
    const std::uint32_t ids[] = {status.st_uid, status.st_gid, attributes.fsx_projid};
    constexpr long project = 2;
    for (long kind = 0; kind <= (attributes.fsx_projid != 0 ? project : project - 1); ++kind) {
        Quota quota{};
        const long error = raw::call(quotactl_fd, fd, get_user_quota + kind, ids[kind], raw::pointer_to_number(&quota));
        // Other errors mean that no quota is in force, or that this kernel does not report quotas.
        if (error == 0 ? is_quota_near_limit(quota) : kind == project && error == -EPERM && is_folder_low(file)) {
            return true;
        }
    }
    return false;
}

}  // namespace

bool is_space_low(const struct statfs& file_system_status) noexcept {
    if (file_system_status.f_blocks == 0) {
        return false;  // the file system reports no limit
    }
    const auto block = static_cast<std::uint64_t>(file_system_status.f_frsize > 0 ? file_system_status.f_frsize
                                                                                  : file_system_status.f_bsize);
    return static_cast<std::uint64_t>(file_system_status.f_bavail) * block < reserve_bytes;
}

void check_space(File& file) noexcept {
    const std::uint64_t now = system::now_ns();
    constexpr std::uint64_t interval_ns = 100'000'000;
    if (file.descriptors.write_fd < 0 || now - file.space_checked_ns < interval_ns ||
        file.mode.load(std::memory_order_relaxed) != Mode::Active) {
        return;
    }
    file.space_checked_ns = now;
    file.accepted_since_check = 0;
    const int fd = file.descriptors.write_fd;
    struct statfs file_system_status {};
    const bool has_status = raw::call(SYS_fstatfs, fd, raw::pointer_to_number(&file_system_status)) == 0;
    // No call that an unprivileged user may make reports quota groups of btrfs.
    const bool hidden =
        static_cast<std::uint32_t>(file_system_status.f_type) == BTRFS_SUPER_MAGIC && !file.rule->is_only_user;
    file.is_write_through = has_status && (hidden || is_space_low(file_system_status) || is_quota_low(file));
    if (file.is_write_through) {
        flush_file(file);
    }
}

}  // namespace sonde::buffer
