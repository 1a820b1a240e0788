// SPDX-License-Identifier: Apache-2.0
// What is known of descriptors that are not buffered: how many calls they had, and who else may have them.
#pragma once

#include "model/table.hpp"

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sonde::buffer {

struct File;

/// What is known of one descriptor that is not in the table.
struct CandidateSlot {
    std::atomic<std::uint32_t> state{0};
    std::atomic<std::uint32_t> identity{0};  ///< hash of device and inode; 0: not asked for yet
};
/// nullptr while no rule buffers files.
extern CandidateSlot* candidates;

inline constexpr std::uint32_t unseen = 0;        ///< inherited, received, or made by a call that is not intercepted
inline constexpr std::uint32_t pass_through = 1;  ///< never buffered
inline constexpr std::uint32_t first_candidate_state = 2;

/// Files that are buffered although no lease guards them. While there are any, every descriptor of this process must be
/// known: another one may lead to the same file.
extern std::atomic<std::uint32_t> unguarded_files;

inline std::uint32_t candidate_state(int fd) noexcept {
    return candidates != nullptr && static_cast<unsigned>(fd) < most_descriptors
               ? candidates[fd].state.load(std::memory_order_relaxed)
               : pass_through;
}
/// Returns whether a call on this descriptor must be counted, or the descriptor examined first.
inline bool counts_calls(int fd) noexcept {
    const std::uint32_t candidate = candidate_state(fd);
    return candidate >= first_candidate_state ||
           (candidate == unseen && candidates != nullptr && unguarded_files.load(std::memory_order_relaxed) != 0);
}

// Layout of the state of a candidate: bit 0 the storage is slow, bit 1 set, then calls, number of the rule, and the
// numbers of children that existed when it was opened.
inline constexpr std::uint32_t slow_bit = 1, candidate_bit = 2;
inline constexpr unsigned calls_shift = 2;
inline constexpr unsigned rule_shift = 12, forks_shift = 19, spawns_shift = 25;
inline constexpr std::uint32_t rule_mask = 0x7F, children_mask = 0x3F;
inline constexpr std::uint32_t calls_mask = 0x3FF, one_call = 1U << calls_shift;
/// Looking a file up may cost a call to slow storage.
inline constexpr std::uint32_t calls_on_slow_storage = 24;
/// Four calls of a file are timed: the first two may have to find the data.
inline constexpr bool is_timed(std::uint32_t calls) noexcept {
    return calls < calls_on_slow_storage && calls % 6 == 3;
}
/// Looking a file up and closing it again costs about as much as 30 calls that are answered from memory.
inline constexpr std::uint32_t least_calls_on_fast_storage = 256;

/// A byte of libc that is not 0 while no second thread was ever made; nullptr where this libc has none.
extern const char* single_threaded;
inline bool is_single_threaded() noexcept {
    return single_threaded != nullptr && *static_cast<const volatile char*>(single_threaded) != 0;
}

/// The usual call of a candidate is only counted. False: ask count_candidate_call() what to do.
inline bool count_usual_call(int fd) noexcept {
    std::uint32_t candidate = candidate_state(fd);
    const std::uint32_t calls = ((candidate >> calls_shift) & calls_mask) + 1;
    const std::uint32_t most_calls = (candidate & slow_bit) != 0 ? calls_on_slow_storage : least_calls_on_fast_storage;
    if (candidate < first_candidate_state || calls >= most_calls || is_timed(calls)) {
        return false;
    }
    if (is_single_threaded()) [[likely]] {  // a locked instruction would cost more than the rest of this function
        candidates[fd].state.store(candidate + one_call, std::memory_order_relaxed);
        return true;
    }
    return candidates[fd].state.compare_exchange_strong(candidate, candidate + one_call, std::memory_order_relaxed);
}

/// A timed call was slow or quick. True when two in a row were slow: a single one may have been interrupted.
bool note_timed_call(bool was_slow) noexcept;
/// True for most files that are opened while several threads run and files of the process gain nothing: they pass
/// through.
bool is_file_skipped() noexcept;
/// Calls after which a file on fast storage is adopted. Grows while files of the process gain nothing.
std::uint32_t calls_on_fast_storage() noexcept;
void set_candidate_state(int fd, std::uint32_t state) noexcept;
/// The state of a descriptor that was just opened, whose rule has this number.
std::uint32_t new_candidate_state(std::uint32_t rule) noexcept;
/// A child that has this descriptor too moves its offset, and opens nothing that a lease would tell of.
bool is_shared_with_child(int fd, std::uint32_t state) noexcept;
void start_candidates() noexcept;
/// The descriptor is never buffered from now on: mapped, used by a stream, sent to another process.
void disqualify(int fd) noexcept;
/// The descriptor is about to be closed.
inline void forget_candidate(int fd) noexcept {
    if (candidates != nullptr && static_cast<unsigned>(fd) < most_descriptors) {
        candidates[fd].state.store(unseen, std::memory_order_relaxed);
        candidates[fd].identity.store(0, std::memory_order_relaxed);
    }
}
/// No descriptor above this was ever considered.
int highest_candidate() noexcept;
/// Another process shares the descriptors from now on: all of them (`inherits_all`), or those without close-on-exec.
void disqualify_after_fork(bool inherits_all) noexcept;
/// Before a file is buffered without a lease: other descriptors of it, already seen, are looked at once more.
void recheck_descriptors_of(const File& file) noexcept;
/// A buffered file has ended; what it gained decides how early the next ones are looked at.
void note_benefit(std::uint64_t gained_ns) noexcept;

}  // namespace sonde::buffer
