// SPDX-License-Identifier: Apache-2.0
#include "cache/profitability.hpp"

#include <algorithm>

namespace sonde::buffer {

namespace {

constexpr std::uint32_t touches_of_a_guess = 3;    ///< calls in the same page that make it worth loading
constexpr std::uint32_t most_unused_quarters = 1;  ///< more than a quarter of what was read ahead unused: pause
constexpr std::uint32_t pause_calls = 256;
constexpr std::uint32_t window = 256;
constexpr std::uint32_t window_after_sleep = 64;  ///< for another look
// Storage that answers faster than this answers from memory: then a copy in between costs about what a call costs for
// 8 KiB, pieces should stay in the processor's cache, and a thread that reads ahead only takes time from the program.
constexpr std::uint64_t speed_of_memory = 1500;  ///< bytes per microsecond
constexpr std::uint64_t least_measured = 4U << 10U;
constexpr std::uint64_t most_of_a_small_call = 64U << 10U;
constexpr std::uint32_t least_transfers = 3;  ///< before storage counts as slow: whoever was interrupted seems slow too
constexpr std::uint64_t call_of_memory_ns = 3000;   ///< a small call that is quicker was answered from memory
constexpr std::uint32_t calls_a_hit = 16;           ///< that must come with it, at most
constexpr std::uint32_t calls_a_hit_in_memory = 2;  ///< where a call below costs little more than the copy
constexpr std::uint32_t longest_sleep = 1U << 16U;

}  // namespace

/// Returns whether transfers use O_DIRECT: then the speed of the kernel's cache does not matter.
bool uses_direct_io(const File& file) noexcept {
    return file.ends.direct >= 0 || file.ends.direct_out >= 0;
}

bool is_storage_fast(const File& file) noexcept {
    return file.payoff.best_rate > speed_of_memory && file.rule->stands_aside && !uses_direct_io(file);
}

/// Returns whether too few bytes were transferred to decide whether a full page or a thread pays.
bool is_rate_unknown(const File& file) noexcept {
    return file.payoff.measured < least_transfers && file.pages.page_size >= most_of_a_small_call &&
           file.rule->stands_aside && !uses_direct_io(file);
}

namespace {

bool has_fast_calls(const File& file) noexcept {
    return file.payoff.small_call_ns != 0 && file.payoff.small_call_ns < call_of_memory_ns && file.rule->stands_aside;
}

}  // namespace

namespace {

/// The best recent rate counts, because a transfer that was interrupted says nothing about storage.
void note_rate(File& file, std::uint64_t bytes_per_us) noexcept {
    ++file.payoff.measured;
    file.payoff.best_rate -= file.payoff.best_rate / 16;
    file.payoff.best_rate = std::max(file.payoff.best_rate, bytes_per_us);
}

}  // namespace

void note_call(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept {
    if (bytes < most_of_a_small_call) {
        file.payoff.small_call_ns =
            file.payoff.small_call_ns == 0 ? ns : file.payoff.small_call_ns - file.payoff.small_call_ns / 8 + ns / 8;
    }
    if (bytes >= least_measured) {
        note_rate(file, bytes * 1000 / (ns + 1));
    }
}

void note_transfer(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept {
    if (bytes >= most_of_a_small_call) {  // of that size a good disk is half as fast as memory
        note_rate(file, bytes * 500 / (ns + 1));
    }
}

bool is_page_worthwhile(File& file, std::int64_t index) noexcept {
    if (has_fast_calls(file)) {
        return false;  // the page would gain little, and the first one that is written starts threads
    }
    Payoff::Ghost& ghost = file.payoff.ghosts[static_cast<std::uint64_t>(index) % std::size(file.payoff.ghosts)];
    if (ghost.index != index) {
        ghost = {index, 1};
        return false;
    }
    if (++ghost.touches < touches_of_a_guess || file.payoff.guesses <= 0) {
        return false;
    }
    --file.payoff.guesses;
    ghost.touches = 0;
    return true;
}

void count_used_read_ahead(File& file, Page& page) noexcept {
    if (page.ahead) {
        page.ahead = false;
        ++file.statistics.ahead_used;
        file.payoff.guesses = std::min(file.payoff.guesses + 1, 16);
    }
}

void count_unused_read_ahead(File& file) noexcept {
    Statistics& counted = file.statistics;
    ++counted.ahead_unused;
    if (counted.ahead_started >= 8 && counted.ahead_unused * 4 > counted.ahead_started * most_unused_quarters) {
        file.payoff.ahead_off = pause_calls;
    }
}

bool count_call(File& file, bool hit) noexcept {
    file.payoff.window_hits += hit ? 1 : 0;
    const std::uint32_t calls = file.payoff.suspension_calls == 0 ? window : window_after_sleep;
    if (++file.payoff.window_calls < calls) {
        return false;
    }
    const std::uint32_t least_hits = calls / (has_fast_calls(file) ? calls_a_hit_in_memory : calls_a_hit);
    const bool pays = file.payoff.window_hits >= least_hits || !file.rule->stands_aside;
    file.payoff.guesses = std::min(file.payoff.guesses + (file.payoff.window_hits * 2 > calls ? 4 : 0), 16);
    file.payoff.window_calls = file.payoff.window_hits = 0;
    if (pays) {
        file.payoff.suspension_calls = 0;
        return false;
    }
    file.payoff.suspension_calls = compute_next_suspension_calls(file);
    ++file.statistics.suspensions;
    file.payoff.guesses = 1;
    return true;
}

std::uint32_t compute_next_suspension_calls(const File& file) noexcept {
    return std::min(file.payoff.suspension_calls == 0 ? 4 * window : file.payoff.suspension_calls * 2, longest_sleep);
}

}  // namespace sonde::buffer
