// SPDX-License-Identifier: Apache-2.0
#include "model/choice.hpp"

#include <algorithm>

namespace sonde::buffer {

namespace {

// The same numbers as in lab/sonde/advise/buffers.py.
constexpr std::uint64_t small = 1U << 20U;
constexpr std::uint64_t largest_page = 1U << 24U;
constexpr std::uint64_t records_of_a_page = 64;
constexpr std::int64_t short_distance = 65536;
constexpr std::uint32_t few_pages = 4, pages_ahead = 2;

/// Returns whether at least a quarter of all calls follow the previous one at the same short distance.
std::uint64_t has_short_strides(const Watch& watch) noexcept {
    std::uint64_t calls = 0;
    for (unsigned i = 0; i < system::Frequent::places; ++i) {
        const std::int64_t stride = watch.strides.value(i);
        const std::uint64_t count = watch.strides.count(i);
        const bool is_short = stride != 0 && stride <= short_distance && stride >= -short_distance;
        calls += is_short && count * 4 > watch.calls() ? count : 0;
    }
    return calls;
}

}  // namespace

void Watch::add(bool writes, std::int64_t begin, std::int64_t bytes) noexcept {
    Side& side = writes ? write : read;
    if (calls() > 0) {
        side.consecutive += begin == last_end ? 1 : 0;
        switches += writes != last_writes ? 1 : 0;
        strides.add(begin - last_begin);
    }
    ++side.calls;
    side.bytes += static_cast<std::uint64_t>(bytes);
    last_begin = begin;
    last_end = begin + bytes;
    last_writes = writes;
}

Choice choose_settings(const Watch& watch, std::uint64_t block) noexcept {
    Choice choice;
    const Watch::Side& most = watch.write.calls > watch.read.calls ? watch.write : watch.read;
    const std::uint64_t calls = watch.calls();
    const std::uint64_t follow_stream = watch.read.consecutive + watch.write.consecutive;
    const std::uint64_t near = has_short_strides(watch);
    if (calls < calls_of_a_watch) {
        choice.why = "it has too few calls to be worth a buffer";
    } else if (most.bytes >= most.calls * small) {
        choice.why = "its calls are large already";
    } else if (std::max(follow_stream, near) * 2 <= calls) {
        choice.why = "its calls neither follow each other nor keep a short distance";
    } else {
        choice.pays = true;
        choice.why =
            follow_stream >= near ? "its small calls follow each other" : "its small calls keep a short distance";
        std::uint64_t page = smallest_page;
        while (page < largest_page && (page * most.calls < records_of_a_page * most.bytes || page < block)) {
            page *= 2;
        }
        choice.page_size = static_cast<std::uint32_t>(page);
        // Interleaved streams (several variables of one file) each need their own page.
        const bool one_stream = watch.switches * 8ULL < calls && most.consecutive * 4ULL > most.calls * 3ULL;
        choice.pages = one_stream ? few_pages : many_pages;
        const bool reads_on = watch.read.consecutive * 2ULL > watch.read.calls || near * 2 > calls;
        choice.ahead = watch.read.calls > 0 && reads_on ? pages_ahead : 0;
    }
    return choice;
}

}  // namespace sonde::buffer
