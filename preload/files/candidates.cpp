// SPDX-License-Identifier: Apache-2.0
#include "files/candidates.hpp"

#include "cache/work_queue.hpp"
#include "files/descriptors.hpp"
#include "guards/lease_thread.hpp"
#include "model/file.hpp"
#include "model/state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>

namespace sonde::buffer {

namespace {

constexpr std::uint64_t slow_call_ns = 10'000;  ///< and a nanosecond a byte

/// True when the calling thread is the only one of the program. Another one may be inside a call on a candidate, which
/// are not counted, and move the offset of the descriptor after the library has read it.
bool is_only_thread_of_program() noexcept {
    struct stat threads {};
    const std::uint64_t own_threads = 1 + count_worker_threads() + (has_lease_thread() ? 1 : 0);
    constexpr std::uint64_t links_of_an_empty_folder = 2;
    return raw::call(SYS_newfstatat, AT_FDCWD, raw::pointer_to_number("/proc/self/task"),
                     raw::pointer_to_number(&threads), 0) == 0 &&
           threads.st_nlink <= links_of_an_empty_folder + own_threads;
}

void adopt_candidate(int fd, std::uint32_t calls_state) noexcept {
    if (!candidates[fd].state.compare_exchange_strong(calls_state, pass_through, std::memory_order_relaxed) ||
        is_shared_with_child(fd, calls_state) || !is_only_thread_of_program()) {
        return;
    }
    const long flags = raw::call(SYS_fcntl, fd, F_GETFL);
    if (flags >= 0) {
        settings::Rule& rule = state.settings->rules[(calls_state >> rule_shift) & rule_mask];
        adopt_descriptor({.fd = fd, .flags = static_cast<int>(flags), .rule = &rule, .just_opened = false});
    }
}

/// Returns whether files of this rule are adopted when they are opened, not after some calls.
bool is_adopted_at_once(const settings::Rule& rule) noexcept {
    return !rule.automatic || rule.verbose || rule.direct || state.json_report_folder != nullptr;
}

}  // namespace

CallRoute count_candidate_call(int fd) noexcept {
    const system::Critical critical;
    const std::uint32_t calls_state = get_candidate_state(fd);
    if (calls_state < first_candidate_state) {
        consider_unseen_descriptor(fd);
        return is_registered_descriptor(fd) ? CallRoute::Buffer : CallRoute::Pass;
    }
    const std::uint32_t calls = ((calls_state >> calls_shift) & calls_mask) + 1;
    const bool is_slow = (calls_state & slow_bit) != 0;
    const std::uint32_t needed = get_calls_needed_on_fast_storage();
    if (calls > (is_slow ? calls_on_slow_storage * (needed / min_calls_on_fast_storage) : needed)) {
        adopt_candidate(fd, calls_state);
        return is_registered_descriptor(fd) ? CallRoute::Buffer : CallRoute::Pass;
    }
    std::uint32_t expected = calls_state;
    candidates[fd].state.compare_exchange_strong(expected, calls_state + one_call, std::memory_order_relaxed);
    return is_timed(calls) ? CallRoute::Time : CallRoute::Pass;
}

void record_candidate_call_time(int fd, std::size_t bytes, std::uint64_t ns) noexcept {
    std::uint32_t calls_state = get_candidate_state(fd);
    if (record_timed_call(ns > slow_call_ns + bytes) && calls_state >= first_candidate_state) {
        candidates[fd].state.compare_exchange_strong(calls_state, calls_state | slow_bit, std::memory_order_relaxed);
    }
}

void consider_unseen_descriptor(int fd) noexcept {
    if (candidates == nullptr || static_cast<unsigned>(fd) >= max_descriptors ||
        get_candidate_state(fd) != not_examined || unguarded_files.load(std::memory_order_relaxed) == 0 ||
        is_registered_descriptor(fd)) {
        return;
    }
    const long flags = raw::call(SYS_fcntl, fd, F_GETFL);
    if (flags >= 0) {
        set_candidate_state(fd, pass_through);
        adopt_descriptor({.fd = fd,
                          .flags = static_cast<int>(flags),
                          .reason = "reached by a descriptor whose opening was not seen",
                          .just_opened = false,
                          .only_if_known = true});
    }
}

void consider_opened_descriptor(int fd, int flags, const char* path, const char* reason) noexcept {
    if (candidates == nullptr || static_cast<unsigned>(fd) >= max_descriptors) {
        return;
    }
    const system::Critical critical;
    if (is_registered_descriptor(fd)) {
        forget_stale_descriptor(fd);
    }
    const bool must_know = unguarded_files.load(std::memory_order_relaxed) != 0;
    set_candidate_state(fd, pass_through);
    if ((flags & (O_PATH | O_DIRECTORY)) != 0) {
        return;
    }
    BufferState& process = state;
    const bool ended =
        process.is_disabled.load(std::memory_order_relaxed) || process.has_ended.load(std::memory_order_relaxed);
    const int number =
        ended ? settings::no_rule : settings::find_rule_index(*process.settings, path != nullptr ? path : "");
    if (number == settings::no_rule && !must_know) {
        process.has_uncovered_files.store(true, std::memory_order_relaxed);
        return;
    }
    if (!must_know && number >= 0 && !is_single_threaded() && process.settings->rules[number].automatic &&
        is_file_skipped()) {
        return;
    }
    const bool at_once = must_know || number < 0 ||
                         is_adopted_at_once(process.settings->rules[static_cast<unsigned>(number)]) ||
                         (!is_single_threaded() && !is_only_thread_of_program());
    if (at_once) {
        adopt_descriptor({.fd = fd, .flags = flags, .path = path != nullptr ? path : "", .reason = reason});
    } else if (reason == nullptr && fd > 2 && (flags & (O_DIRECT | O_SYNC | O_DSYNC)) == 0) {
        set_candidate_state(fd, make_candidate_state(static_cast<std::uint32_t>(number)));
    }
}

void duplicate_candidate(int fd, int duplicate) noexcept {
    const std::uint32_t calls_state = get_candidate_state(fd);
    if (candidates == nullptr || static_cast<unsigned>(duplicate) >= max_descriptors) {
        return;
    }
    const system::Critical critical;
    set_candidate_state(duplicate, calls_state == not_examined ? not_examined : pass_through);
    if (calls_state >= first_candidate_state) {
        candidates[fd].state.store(pass_through, std::memory_order_relaxed);  // two numbers for one offset
    }
}

}  // namespace sonde::buffer
