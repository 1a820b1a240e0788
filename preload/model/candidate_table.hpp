// SPDX-License-Identifier: Apache-2.0
// Candidates: descriptors that are not buffered yet, with their number of calls and whether other processes share them.
#pragma once

#include "model/table.hpp"

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sonde::buffer {

struct File;

/// State of one descriptor that is not registered.
struct CandidateSlot {
    std::atomic<std::uint32_t> state{0};
    std::atomic<std::uint32_t> identity{0};  ///< hash of device and inode; 0: not asked for yet
};
/// nullptr while no rule buffers files.
extern CandidateSlot* candidates;

inline constexpr std::uint32_t not_examined = 0;  ///< inherited, received, or made by a call that is not intercepted
inline constexpr std::uint32_t pass_through = 1;  ///< never buffered
inline constexpr std::uint32_t first_candidate_state = 2;

/// Files that are buffered although no lease guards them. While there are any, every descriptor of this process must be
/// known: another one may lead to the same file.
extern std::atomic<std::uint32_t> unguarded_files;

inline std::uint32_t get_candidate_state(int fd) noexcept {
    return candidates != nullptr && static_cast<unsigned>(fd) < max_descriptors
               ? candidates[fd].state.load(std::memory_order_relaxed)
               : pass_through;
}
/// Returns whether a call on this descriptor must be counted, or the descriptor examined first.
inline bool counts_calls(int fd) noexcept {
    const std::uint32_t candidate = get_candidate_state(fd);
    return candidate >= first_candidate_state ||
           (candidate == not_examined && candidates != nullptr && unguarded_files.load(std::memory_order_relaxed) != 0);
}

// Layout of the state of a candidate: bit 0 the storage is slow, bit 1 set, then calls, number of the rule, and the
// numbers of children that existed when it was opened.
inline constexpr std::uint32_t slow_bit = 1, candidate_bit = 2;
inline constexpr unsigned calls_shift = 2;
inline constexpr unsigned rule_shift = 12, forks_shift = 19, spawns_shift = 25;
inline constexpr std::uint32_t rule_mask = 0x7F, children_mask = 0x3F;
inline constexpr std::uint32_t calls_mask = 0x3FF, one_call = 1U << calls_shift;
/// Limit: adopting a file may cost a call to slow storage.
inline constexpr std::uint32_t calls_on_slow_storage = 24;
/// Returns whether this call is timed: four calls are, because the first two may be slow on cold data.
inline constexpr bool is_timed(std::uint32_t calls) noexcept {
    return calls < calls_on_slow_storage && calls % 6 == 3;
}
/// Looking a file up and closing it again costs about as much as 30 calls that are answered from memory.
inline constexpr std::uint32_t min_calls_on_fast_storage = 256;

/// A byte of libc that is not 0 while no second thread was ever made; nullptr where this libc has none.
extern const char* single_threaded;
inline bool is_single_threaded() noexcept {
    return single_threaded != nullptr && *static_cast<const volatile char*>(single_threaded) != 0;
}

/// Counts the usual call of a candidate. Returns false if count_candidate_call() must decide.
inline bool count_usual_call(int fd) noexcept {
    std::uint32_t candidate = get_candidate_state(fd);
    const std::uint32_t calls = ((candidate >> calls_shift) & calls_mask) + 1;
    const std::uint32_t max_calls = (candidate & slow_bit) != 0 ? calls_on_slow_storage : min_calls_on_fast_storage;
    if (candidate < first_candidate_state || calls >= max_calls || is_timed(calls)) {
        return false;
    }
    if (is_single_threaded()) [[likely]] {  // a locked instruction would cost more than the rest of this function
        candidates[fd].state.store(candidate + one_call, std::memory_order_relaxed);
        return true;
    }
    return candidates[fd].state.compare_exchange_strong(candidate, candidate + one_call, std::memory_order_relaxed);
}

/// Records whether a timed call was slow. Returns true if two in a row were: a single one may have been interrupted.
bool record_timed_call(bool was_slow) noexcept;
/// True for most files that are opened while several threads run and files of the process gain nothing: they pass
/// through.
bool is_file_skipped() noexcept;
/// Returns the calls after which a file on fast storage is adopted. Grows while files of the process gain nothing.
std::uint32_t get_calls_needed_on_fast_storage() noexcept;
void set_candidate_state(int fd, std::uint32_t state) noexcept;
/// Returns the state of a descriptor that was just opened and whose rule has this number.
std::uint32_t make_candidate_state(std::uint32_t rule) noexcept;
/// Returns whether a child process shares the descriptor: it can move the offset without an open() that a lease
/// notices.
bool is_shared_with_child(int fd, std::uint32_t state) noexcept;
void start_candidates() noexcept;
/// Excludes the descriptor from buffering: it is mapped, used by a stream, or sent to another process.
void exclude_descriptor(int fd) noexcept;
/// The descriptor is about to be closed.
inline void forget_candidate(int fd) noexcept {
    if (candidates != nullptr && static_cast<unsigned>(fd) < max_descriptors) {
        candidates[fd].state.store(not_examined, std::memory_order_relaxed);
        candidates[fd].identity.store(0, std::memory_order_relaxed);
    }
}
/// Returns the highest descriptor that was ever considered.
int find_highest_candidate() noexcept;
/// Excludes descriptors that a child process shares: all (`inherits_all`), or those without close-on-exec.
void exclude_descriptors_after_fork(bool inherits_all) noexcept;
/// Considers other descriptors of the file again, before it is buffered without a lease.
void recheck_descriptors_of(const File& file) noexcept;
/// Records the gain of a file at its last close; it decides after how many calls the next files are adopted.
void record_benefit(std::uint64_t gained_ns) noexcept;

}  // namespace sonde::buffer
