// SPDX-License-Identifier: Apache-2.0
#include "model/choice.hpp"

#include <algorithm>

namespace sonde::buffer {

namespace {

// The same numbers as in lab/sonde/advise/buffers.py.
constexpr std::uint64_t small_file_bytes = 1U << 20U;
constexpr std::uint64_t largest_page = 1U << 24U;
constexpr std::uint64_t min_records_per_page = 64;
constexpr std::int64_t short_distance = 65536;
constexpr std::uint32_t default_pages = 4, pages_ahead = 2;

/// Returns whether at least a quarter of all calls follow the previous one at the same short distance.
std::uint64_t has_short_strides(const AccessWatch& watch) noexcept {
    std::uint64_t calls = 0;
    for (unsigned i = 0; i < system::FrequentValues::capacity; ++i) {
        const std::int64_t stride = watch.strides.value(i);
        const std::uint64_t count = watch.strides.count(i);
        const bool is_short = stride != 0 && stride <= short_distance && stride >= -short_distance;
        calls += is_short && count * 4 > watch.calls() ? count : 0;
    }
    return calls;
}

/// Returns whether storage answers large calls from memory, where each of them costs about what a copy costs.
bool has_large_calls_from_memory(const AccessWatch::WatchedDirection& side) noexcept {
    return side.bytes >= side.calls * static_cast<std::uint64_t>(min_bypass_bytes_in_memory) && side.ns > 0 &&
           side.new_bytes * 1000 > side.ns * memory_bytes_per_us;
}

}  // namespace

void AccessWatch::add(bool writes, std::int64_t begin, std::int64_t bytes, std::uint64_t ns) noexcept {
    WatchedDirection& side = writes ? write : read;
    std::int64_t overlap = 0;
    if (calls() > 0) {
        overlap = std::max<std::int64_t>(std::min(begin + bytes, last_end) - std::max(begin, last_begin), 0);
        side.consecutive += begin == last_end ? 1 : 0;
        switches += writes != last_writes ? 1 : 0;
        strides.add(begin - last_begin);
    }
    ++side.calls;
    side.bytes += static_cast<std::uint64_t>(bytes);
    side.new_bytes += static_cast<std::uint64_t>(bytes - overlap);
    side.ns += ns;
    last_begin = begin;
    last_end = begin + bytes;
    last_writes = writes;
}

BufferChoice choose_settings(const AccessWatch& watch, std::uint64_t block) noexcept {
    BufferChoice choice;
    const AccessWatch::WatchedDirection& busier_direction =
        watch.write.calls > watch.read.calls ? watch.write : watch.read;
    const std::uint64_t calls = watch.calls();
    const std::uint64_t follow_stream = watch.read.consecutive + watch.write.consecutive;
    const std::uint64_t near = has_short_strides(watch);
    if (calls < watched_calls) {
        choice.reason = "it has too few calls to be worth a buffer";
    } else if (busier_direction.bytes >= busier_direction.calls * small_file_bytes) {
        choice.reason = "its calls are large already";
    } else if (has_large_calls_from_memory(busier_direction)) {
        choice.reason = "storage answers its calls from memory, as quickly as a buffer would";
    } else if (std::max(follow_stream, near) * 2 <= calls) {
        choice.reason = "its calls neither follow each other nor keep a short distance";
    } else {
        choice.is_profitable = true;
        choice.reason =
            follow_stream >= near ? "its small calls follow each other" : "its small calls keep a short distance";
        std::uint64_t page = min_page_bytes;
        while (page < largest_page &&
               (page * busier_direction.calls < min_records_per_page * busier_direction.new_bytes || page < block)) {
            page *= 2;
        }
        choice.page_size = static_cast<std::uint32_t>(page);
        // Interleaved streams (several variables of one file) each need their own page.
        const bool one_stream =
            watch.switches * 8ULL < calls && busier_direction.consecutive * 4ULL > busier_direction.calls * 3ULL;
        choice.pages = one_stream ? default_pages : max_pages_chosen;
        const bool reads_on = watch.read.consecutive * 2ULL > watch.read.calls || near * 2 > calls;
        choice.prefetch = watch.read.calls > 0 && reads_on ? pages_ahead : 0;
    }
    return choice;
}

}  // namespace sonde::buffer
