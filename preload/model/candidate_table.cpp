// SPDX-License-Identifier: Apache-2.0
#include "model/candidate_table.hpp"

#include "model/file.hpp"
#include "system/memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>

namespace sonde::buffer {

constinit CandidateSlot* candidates = nullptr;
constinit const char* single_threaded = nullptr;
constinit std::atomic<std::uint32_t> unguarded_files{0};

namespace {

constexpr std::uint32_t max_calls = 1000;
constexpr std::uint64_t cost_of_buffering_ns = 20'000;

constinit std::atomic<std::uint32_t> forks{0}, spawns{0};
constinit std::atomic<std::uint32_t> calls_needed{min_calls_on_fast_storage};
constinit std::atomic<int> highest_seen{0};
constinit std::atomic<std::uint32_t> slow_in_a_row{0}, fast_calls_in_a_row{0}, files_opened{0};
constexpr std::uint32_t timed_calls_before_sampling = 32;  ///< timed calls, after which few files are timed
constexpr std::uint32_t sampling_interval = 64;            ///< one file in so many is

std::uint32_t compute_identity(dev_t device, ino_t inode) noexcept {
    const std::uint64_t mixed =
        (static_cast<std::uint64_t>(inode) + (static_cast<std::uint64_t>(device) << 32U)) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::uint32_t>(mixed >> 32U) | 1U;
}

std::uint32_t get_identity_of_descriptor(int fd) noexcept {
    std::uint32_t identity = candidates[fd].identity.load(std::memory_order_relaxed);
    struct stat status {};
    if (identity == 0 && raw::call(SYS_fstat, fd, raw::pointer_to_number(&status)) == 0) {
        identity = compute_identity(status.st_dev, status.st_ino);
        candidates[fd].identity.store(identity, std::memory_order_relaxed);
    }
    return identity;
}

}  // namespace

std::uint32_t get_calls_needed_on_fast_storage() noexcept {
    return calls_needed.load(std::memory_order_relaxed);
}

bool record_timed_call(bool was_slow) noexcept {
    std::atomic<std::uint32_t>& in_a_row = was_slow ? slow_in_a_row : fast_calls_in_a_row;
    (was_slow ? fast_calls_in_a_row : slow_in_a_row).store(0, std::memory_order_relaxed);
    return in_a_row.fetch_add(1, std::memory_order_relaxed) >= 1 && was_slow;
}

bool is_file_skipped() noexcept {
    return get_calls_needed_on_fast_storage() == max_calls &&
           files_opened.fetch_add(1, std::memory_order_relaxed) % sampling_interval != 0;
}

std::uint32_t make_candidate_state(std::uint32_t rule) noexcept {
    const bool is_known = fast_calls_in_a_row.load(std::memory_order_relaxed) >= timed_calls_before_sampling &&
                          files_opened.fetch_add(1, std::memory_order_relaxed) % sampling_interval != 0;
    const std::uint32_t calls = is_known ? calls_on_slow_storage - 1 : 0;  // behind the timed ones
    return candidate_bit | calls << calls_shift | rule << rule_shift |
           (forks.load(std::memory_order_relaxed) & children_mask) << forks_shift |
           (spawns.load(std::memory_order_relaxed) & children_mask) << spawns_shift;
}

void set_candidate_state(int fd, std::uint32_t calls_state) noexcept {
    int previous_highest = highest_seen.load(std::memory_order_relaxed);
    while (fd > previous_highest &&
           !highest_seen.compare_exchange_weak(previous_highest, fd, std::memory_order_relaxed)) {
    }
    candidates[fd].identity.store(0, std::memory_order_relaxed);
    candidates[fd].state.store(calls_state, std::memory_order_relaxed);
}

void start_candidates() noexcept {
    if (candidates == nullptr) {
        candidates = static_cast<CandidateSlot*>(system::map_bytes(sizeof(CandidateSlot) * max_descriptors, true));
    }
}

void exclude_descriptor(int fd) noexcept {
    if (get_candidate_state(fd) >= first_candidate_state) {
        candidates[fd].state.store(pass_through, std::memory_order_relaxed);
    }
}

void exclude_descriptors_after_fork(bool inherits_all) noexcept {
    if (candidates == nullptr) {
        return;
    }
    std::atomic<std::uint32_t>& children = inherits_all ? forks : spawns;
    if ((children.fetch_add(1, std::memory_order_relaxed) & children_mask) == children_mask) {
        for (int fd = 0; fd <= highest_seen.load(std::memory_order_relaxed); ++fd) {  // the number begins anew
            exclude_descriptor(fd);
        }
    }
}

int find_highest_candidate() noexcept {
    return highest_seen.load(std::memory_order_relaxed);
}

void recheck_descriptors_of(const File& file) noexcept {
    const std::uint32_t identity = compute_identity(file.device, file.inode);
    for (int fd = 0; candidates != nullptr && fd <= highest_seen.load(std::memory_order_relaxed); ++fd) {
        if (get_candidate_state(fd) != not_examined && !is_registered_descriptor(fd) &&
            get_identity_of_descriptor(fd) == identity) {
            candidates[fd].state.store(not_examined, std::memory_order_relaxed);
        }
    }
}

void record_benefit(std::uint64_t gained_ns) noexcept {
    const std::uint32_t needed = calls_needed.load(std::memory_order_relaxed);
    calls_needed.store(gained_ns < cost_of_buffering_ns ? std::min(needed * 2, max_calls)
                                                        : std::max(needed / 2, min_calls_on_fast_storage),
                       std::memory_order_relaxed);
}

bool is_shared_with_child(int fd, std::uint32_t calls_state) noexcept {
    if (((calls_state >> forks_shift) & children_mask) != (forks.load(std::memory_order_relaxed) & children_mask)) {
        return true;
    }
    return ((calls_state >> spawns_shift) & children_mask) !=
               (spawns.load(std::memory_order_relaxed) & children_mask) &&
           (raw::call(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC) == 0;
}

}  // namespace sonde::buffer
