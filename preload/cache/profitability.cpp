// SPDX-License-Identifier: Apache-2.0
#include "cache/profitability.hpp"

#include <algorithm>
#include <iterator>

namespace sonde::buffer {

namespace {

constexpr std::uint32_t touches_before_speculative_load = 3;  ///< calls in the same page that make it worth loading
constexpr std::uint32_t max_unused_quarters = 1;  ///< more than a quarter of what was read ahead unused: pause
constexpr std::uint32_t read_ahead_pause_calls = 256;
constexpr std::uint32_t window_calls = 256;
constexpr std::uint32_t window_calls_after_suspension = 64;  ///< for another look
constexpr std::uint64_t min_measured_bytes = 4U << 10U;
constexpr std::uint64_t max_small_call_bytes = 64U << 10U;
constexpr std::uint32_t min_measured_transfers =
    3;  ///< before storage counts as slow: whoever was interrupted seems slow too
constexpr std::uint64_t max_cached_call_ns = 3000;        ///< a small call that is quicker was answered from memory
constexpr std::uint32_t max_calls_per_hit = 16;           ///< that must come with it, at most
constexpr std::uint32_t max_calls_per_hit_in_memory = 2;  ///< where a call below costs little more than the copy
constexpr std::uint32_t max_suspension_calls = 1U << 16U;

}  // namespace

/// Returns whether transfers use O_DIRECT: then the speed of the kernel's cache does not matter.
bool uses_direct_io(const File& file) noexcept {
    return file.descriptors.direct_read_fd >= 0 || file.descriptors.direct_write_fd >= 0;
}

bool is_storage_fast(const File& file) noexcept {
    return file.profitability.best_bytes_per_us > memory_bytes_per_us && file.rule->may_suspend &&
           !uses_direct_io(file);
}

/// Returns whether too few bytes were transferred to decide whether full pages or threads are profitable.
bool is_rate_unknown(const File& file) noexcept {
    return file.profitability.measured_transfers < min_measured_transfers &&
           file.pages.page_size >= max_small_call_bytes && file.rule->may_suspend && !uses_direct_io(file);
}

namespace {

bool has_fast_calls(const File& file) noexcept {
    return file.profitability.small_call_ns != 0 && file.profitability.small_call_ns < max_cached_call_ns &&
           file.rule->may_suspend;
}

}  // namespace

namespace {

/// The best recent rate counts, because a transfer that was interrupted says nothing about storage.
void record_rate(File& file, std::uint64_t bytes_per_us) noexcept {
    ++file.profitability.measured_transfers;
    file.profitability.best_bytes_per_us -= file.profitability.best_bytes_per_us / 16;
    file.profitability.best_bytes_per_us = std::max(file.profitability.best_bytes_per_us, bytes_per_us);
}

}  // namespace

void record_call_time(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept {
    if (bytes < max_small_call_bytes) {
        file.profitability.small_call_ns =
            file.profitability.small_call_ns == 0
                ? ns
                : file.profitability.small_call_ns - file.profitability.small_call_ns / 8 + ns / 8;
    }
    if (bytes >= min_measured_bytes) {
        record_rate(file, bytes * 1000 / (ns + 1));
    }
}

void record_transfer_time(File& file, std::uint64_t bytes, std::uint64_t ns) noexcept {
    if (bytes >= max_small_call_bytes) {  // of that size a good disk is half as fast as memory
        record_rate(file, bytes * 500 / (ns + 1));
    }
}

bool is_page_worthwhile(File& file, std::int64_t index) noexcept {
    if (has_fast_calls(file)) {
        return false;  // the page would gain little, and the first one that is written starts threads
    }
    Profitability::PageTouches& ghost =
        file.profitability
            .uncached_pages[static_cast<std::uint64_t>(index) % std::size(file.profitability.uncached_pages)];
    if (ghost.index != index) {
        ghost = {index, 1};
        return false;
    }
    if (++ghost.touches < touches_before_speculative_load || file.profitability.speculative_loads_left <= 0) {
        return false;
    }
    --file.profitability.speculative_loads_left;
    ghost.touches = 0;
    return true;
}

void count_used_read_ahead(File& file, Page& page) noexcept {
    if (page.is_read_ahead) {
        page.is_read_ahead = false;
        ++file.statistics.read_aheads_used;
        file.profitability.speculative_loads_left = std::min(file.profitability.speculative_loads_left + 1, 16);
    }
}

void count_unused_read_ahead(File& file) noexcept {
    Statistics& counted = file.statistics;
    ++counted.read_aheads_unused;
    if (counted.read_aheads_started >= 8 &&
        counted.read_aheads_unused * 4 > counted.read_aheads_started * max_unused_quarters) {
        file.profitability.read_ahead_pause = read_ahead_pause_calls;
    }
}

bool count_call(File& file, bool hit) noexcept {
    file.profitability.window_hits += hit ? 1 : 0;
    const std::uint32_t calls = file.profitability.suspension_calls == 0 ? window_calls : window_calls_after_suspension;
    if (++file.profitability.window_calls < calls) {
        return false;
    }
    const std::uint32_t min_hits = calls / (has_fast_calls(file) ? max_calls_per_hit_in_memory : max_calls_per_hit);
    const bool pays = file.profitability.window_hits >= min_hits || !file.rule->may_suspend;
    file.profitability.speculative_loads_left =
        std::min(file.profitability.speculative_loads_left + (file.profitability.window_hits * 2 > calls ? 4 : 0), 16);
    file.profitability.window_calls = file.profitability.window_hits = 0;
    if (pays) {
        file.profitability.suspension_calls = 0;
        return false;
    }
    file.profitability.suspension_calls = compute_next_suspension_calls(file);
    ++file.statistics.suspensions;
    file.profitability.speculative_loads_left = 1;
    return true;
}

std::uint32_t compute_next_suspension_calls(const File& file) noexcept {
    return std::min(
        file.profitability.suspension_calls == 0 ? 4 * window_calls : file.profitability.suspension_calls * 2,
        max_suspension_calls);
}

}  // namespace sonde::buffer
