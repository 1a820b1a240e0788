// SPDX-License-Identifier: Apache-2.0
#include "guards/leases.hpp"

#include "guards/lease_thread.hpp"
#include "guards/node_locks.hpp"
#include "model/candidate_table.hpp"
#include "model/state.hpp"
#include "system/hash.hpp"

#include <fcntl.h>
#include <cerrno>
#include <cstring>

namespace sonde::buffer {

constinit std::atomic<std::uint32_t> leases_held{0};

namespace {

constexpr const char* why_lease_refused = "another process has it open, or this one by another descriptor";
constexpr const char* why_not_owner = "the kernel grants no lease on it: its owner is another user";
constexpr const char* why_no_lease = "its file system grants no lease; name the file in IOBUF_PARAMS to buffer it";
constexpr const char* why_no_thread = "no thread can wait for the kernel to take a lease back";

/// Number of leased files by the hash of the last part of their path.
constexpr unsigned leased_name_slots = 256;
constinit std::atomic<std::uint16_t> leased_names[leased_name_slots];

std::atomic<std::uint16_t>& find_leased_name_counter(const char* path) noexcept {
    const char* slash = std::strrchr(path, '/');
    return leased_names[(system::compute_hash(slash != nullptr ? slash + 1 : path) >> 32U) % leased_name_slots];
}

/// Makes the kernel notify `thread` of a lease break.
bool set_signal_owner(int fd, int thread) noexcept {
    struct f_owner_ex owner {};
    owner.type = F_OWNER_TID;
    owner.pid = thread;
    return raw::call(SYS_fcntl, fd, F_SETSIG, lease_signal) == 0 &&
           raw::call(SYS_fcntl, fd, F_SETOWN_EX, raw::pointer_to_number(&owner)) == 0;
}

void forget_signal_owner(int fd) noexcept {
    raw::call(SYS_fcntl, fd, F_SETOWN, 0);
    raw::call(SYS_fcntl, fd, F_SETSIG, 0);
}

/// Acquires the lease that the descriptions of the file need. Returns 0 or an errno.
int take_lease(File& file) noexcept {
    const Description& description = *file.descriptors.descriptions;
    const bool writes = file.descriptors.write_fd >= 0;
    if (writes && description.next != nullptr) {
        return EAGAIN;  // the kernel counts each open() of this process too
    }
    const int thread = start_lease_thread();
    if (thread <= 0) {
        return ESRCH;
    }
    const int fd = description.fd;
    const long type = writes ? F_WRLCK : F_RDLCK;
    // Set before the lease, so that no signal reaches the program; set again, because some kernels replace the owner.
    // The kernel forgets it with the lease.
    const long error = set_signal_owner(fd, thread) ? -raw::call(SYS_fcntl, fd, F_SETLEASE, type) : ESRCH;
    if (error != 0) {
        forget_signal_owner(fd);
        return static_cast<int>(error);
    }
    set_signal_owner(fd, thread);
    file.lease.fd = fd;
    file.lease.type = static_cast<int>(type);
    file.guard = file.last_guard = Guard::Lease;
    leases_held.fetch_add(1, std::memory_order_seq_cst);
    find_leased_name_counter(file.path).fetch_add(1, std::memory_order_relaxed);
    return 0;
}

void count_unguarded(File& file, Guard guard) noexcept {
    if (file.guard == Guard::None) {
        unguarded_files.fetch_add(1, std::memory_order_seq_cst);
        recheck_descriptors_of(file);
    }
    file.guard = file.last_guard = guard;
}

/// Without a lease: the guards are the node table (other processes with the library) and the user's word.
const char* claim_instead_of_lease(File& file) noexcept {
    if (file.append.only_appends && !file.rule->is_only_user) {
        return "opened with O_APPEND, and no lease keeps others from appending";
    }
    // Ranks that share a file accept each other, but no other process.
    const bool only_one = !file.is_shared && file.descriptors.write_fd >= 0;
    if (!claim_file_on_node(file, only_one)) {
        return "another process on this node uses it too";
    }
    count_unguarded(file, state.cannot_detect_others ? Guard::UserWord : Guard::NodeTable);
    return nullptr;
}

}  // namespace

const char* establish_guard(File& file) noexcept {
    if (file.guard != Guard::None || file.descriptors.descriptions == nullptr) {
        return nullptr;
    }
    const settings::Rule& rule = *file.rule;
    // A second descriptor with O_DIRECT would break the lease.
    const bool could_lease = file.is_local && !file.is_shared && !rule.direct && state.settings->limits.uses_leases;
    const int error = !could_lease ? EINVAL : state.settings->limits.threads > 0 ? take_lease(file) : ESRCH;
    if (error == 0) {
        return nullptr;
    }
    if (!rule.is_only_user && !file.is_shared && (rule.automatic || error == EAGAIN || error == EACCES)) {
        return error == EAGAIN   ? why_lease_refused
               : error == EACCES ? why_not_owner
               : error == ESRCH  ? why_no_thread
                                 : why_no_lease;
    }
    return claim_instead_of_lease(file);
}

void release_lease(File& file) noexcept {
    if (file.guard != Guard::Lease) {
        return;
    }
    const long error = raw::call(SYS_fcntl, file.lease.fd, F_SETLEASE, F_UNLCK);
    file.lease.is_lost |= error == -EAGAIN;  // the kernel took it: the process was stopped for too long
    forget_lease(file);
}

void forget_lease(File& file) noexcept {
    if (file.guard == Guard::Lease) {
        file.lease.fd = -1;
        file.guard = Guard::None;
        leases_held.fetch_sub(1, std::memory_order_relaxed);
        find_leased_name_counter(file.path).fetch_sub(1, std::memory_order_relaxed);
    }
}

void release_guard(File& file) noexcept {
    release_lease(file);
    if (file.guard != Guard::None) {
        unguarded_files.fetch_sub(1, std::memory_order_relaxed);
        file.guard = Guard::None;
    }
    withdraw_claim(file);
}

bool may_break_own_lease(const char* path) noexcept {
    return leases_held.load(std::memory_order_relaxed) != 0 && path != nullptr &&
           find_leased_name_counter(path).load(std::memory_order_relaxed) != 0;
}

bool is_lease_broken(const File& file) noexcept {
    return raw::call(SYS_fcntl, file.lease.fd, F_GETLEASE) != file.lease.type;
}

}  // namespace sonde::buffer
