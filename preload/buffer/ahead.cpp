// SPDX-License-Identifier: Apache-2.0
// What will be wanted next, and whether buffering pays at all. Nothing is read ahead before a stream has shown itself,
// and nothing is kept up that did not help: a wrong guess costs a whole page.

#include "buffer/ahead.hpp"

#include <algorithm>
#include "buffer/pages.hpp"
#include "buffer/state.hpp"
#include "buffer/workers.hpp"

namespace sonde::buffer {

namespace {

constexpr std::uint32_t calls_of_a_stream = 2;  ///< in a row, before whole pages are loaded ahead
constexpr std::uint32_t strides_of_a_stream = 3;
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
constexpr std::int64_t large_in_memory = 8U << 10U;
constexpr std::uint32_t most_probes = 4;      ///< the very first one may be slow for reasons of its own
constexpr std::uint32_t least_transfers = 3;  ///< before storage counts as slow: whoever was interrupted seems slow too
constexpr std::uint64_t reach_in_memory = 128U << 10U;
constexpr std::uint64_t call_of_memory_ns = 3000;   ///< a small call that is quicker was answered from memory
constexpr std::uint32_t calls_a_hit = 16;           ///< that must come with it, at most
constexpr std::uint32_t calls_a_hit_in_memory = 2;  ///< where a call below costs little more than the copy
constexpr std::uint32_t longest_sleep = 1U << 16U;
// A lock costs a look at the size, and all pages: databases lock for each look into a file.
constexpr std::uint32_t vain_locks = 4;  ///< in a row: one when a file is opened, as HDF5 does, is no reason
constexpr std::uint64_t least_hits_a_lock = 16;
constexpr std::uint64_t most_read_for_one = 4;  ///< bytes read from storage for each that the program wanted

/// Queues [begin, end) of the page for the workers. False when there is no place for it now.
bool queue_page(File& file, std::int64_t index, std::uint32_t begin, std::uint32_t end) noexcept {
    bool again = false;
    Page* page = new_page(file, index, again, false);
    if (page == nullptr) {
        return false;
    }
    page->busy = Busy::Queued;
    page->ahead = true;
    page->want_begin = begin;
    page->want_end = end;
    ++file.held.queued;
    ++file.statistics.ahead_started;
    return true;
}

/// How fast the kernel's cache is says nothing where we go around it.
bool goes_around(const File& file) noexcept {
    return file.ends.direct >= 0 || file.ends.direct_out >= 0;
}

bool is_fast(const File& file) noexcept {
    return file.payoff.best_rate > speed_of_memory && !file.rule->eager && !goes_around(file);
}

/// Too little of a size that tells was moved yet: a whole page, or a thread, may be for nothing.
bool is_unknown(const File& file) noexcept {
    return file.payoff.measured < least_transfers && file.held.page_size >= most_of_a_small_call && !file.rule->eager &&
           !goes_around(file);
}

bool quick_calls(const File& file) noexcept {
    return file.payoff.small_call_ns != 0 && file.payoff.small_call_ns < call_of_memory_ns && !file.rule->eager;
}

}  // namespace

bool is_slow(const File& file) noexcept {
    return !is_fast(file) && !is_unknown(file);
}

namespace {

/// The best of late: one that was interrupted says nothing about storage.
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

Move judge(File& file, Stream& stream, std::int64_t begin, std::int64_t end) noexcept {
    Move move = follow(stream, begin, end, file.held.page_size);
    if (file.watching) [[unlikely]] {
        move.straight = true;
        move.local = false;
    } else if (file.rule->eager) {
        move.local = true;
        move.reach = file.held.page_size;
    } else if (is_fast(file)) {
        move.straight = end - begin >= large_in_memory;
        move.local = move.local && !move.straight;
        move.reach = std::min(move.reach, reach_in_memory);
        move.passes = move.local && move.run > file.held.page_size;
    } else if (file.payoff.probes < most_probes && !goes_around(file) && end - begin >= large_in_memory) {
        // The first large calls show what storage is like: where they gain nothing, no page and no thread is made.
        ++file.payoff.probes;
        move.straight = true;
        move.local = false;
    } else if (is_unknown(file)) {
        move.reach = std::min(move.reach, reach_in_memory);
    }
    return move;
}

Move follow(Stream& stream, std::int64_t begin, std::int64_t end, std::uint32_t page_size) noexcept {
    Move move;
    const bool first = stream.calls == 0;
    const bool forward = !first && begin == stream.last_end;
    const bool backward = !first && end == stream.last_begin;
    const std::int64_t step = begin - stream.last_begin;
    stream.forward = forward ? stream.forward + 1 : 0;
    stream.backward = backward ? stream.backward + 1 : 0;
    stream.strides = !first && step == stream.step && step != 0 ? stream.strides + 1 : 0;
    if (first && begin == 0) {
        stream.forward = 1;  // most files are read from front to back
    }
    stream.step = first ? 0 : step;
    const std::int64_t again = std::min(end, stream.last_end) - std::max(begin, stream.last_begin);
    move.fresh = static_cast<std::uint64_t>(end - begin - (first ? 0 : std::max<std::int64_t>(again, 0)));
    stream.last_begin = begin;
    stream.last_end = end;
    ++stream.calls;
    const std::uint32_t run = std::max(stream.forward, stream.backward);
    move.run = static_cast<std::uint64_t>(run) * static_cast<std::uint64_t>(end - begin);
    move.backward = stream.backward > 0;
    move.dense = stream.strides >= strides_of_a_stream &&
                 std::max(step, -step) <= std::min<std::int64_t>(4 * (end - begin), page_size);
    move.local = run > 0 || move.dense;
    if (move.local) {
        // 4, 16, 64 ... times the call: a short run costs little, a long one has whole pages soon.
        const std::uint32_t steps = std::min(std::max(run, move.dense ? stream.strides : 0U), 10U);
        const auto bytes = static_cast<std::uint64_t>(end - begin);
        move.reach = std::max<std::uint64_t>(bytes << (2 * steps), 16384);
        move.backward = move.backward || (move.dense && step < 0);
    }
    return move;
}

bool worth_a_guess(File& file, std::int64_t index) noexcept {
    if (quick_calls(file)) {
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

void plan_ahead(File& file, const Stream& stream, const Move& move, std::int64_t begin, std::int64_t end) noexcept {
    const std::uint32_t most = std::min(file.held.prefetch, file.held.limit > 1 ? file.held.limit - 1 : 0);
    if (most == 0 || file.watching || file.held.queued >= most || is_fast(file) || is_unknown(file) ||
        state.settings->limits.workers() == 0) {
        return;
    }
    if (file.payoff.ahead_off > 0) {
        --file.payoff.ahead_off;
        return;
    }
    const std::int64_t size = file.held.page_size;
    const bool steady = stream.forward >= calls_of_a_stream || stream.backward >= calls_of_a_stream || move.dense;
    bool queued = false;
    if (steady && move.reach >= file.held.page_size / 4) {
        const std::int64_t direction = move.backward ? -1 : 1;
        const std::int64_t from = (move.backward ? begin : end - 1) / size;
        if (stream.planned == from) {
            return;
        }
        stream.planned = from;
        for (std::int64_t k = 1; k <= most && file.held.queued < most; ++k) {
            const std::int64_t index = from + direction * k;
            if (index < 0 || index * size >= file.size) {
                break;
            }
            if (find_page(file, index) == nullptr) {
                if (!queue_page(file, index, 0, file.held.page_size)) {
                    break;
                }
                queued = true;
            }
        }
    } else if (stream.strides >= strides_of_a_stream && !move.local) {
        for (std::int64_t k = 1; k <= most && file.held.queued < most; ++k) {
            const std::int64_t place = begin + stream.step * k;
            const std::int64_t index = place / size;
            const std::int64_t inside = place % size;
            if (place < 0 || place >= file.size || inside + (end - begin) > size) {
                break;
            }
            if (find_page(file, index) == nullptr) {
                if (!queue_page(file, index, static_cast<std::uint32_t>(inside),
                                static_cast<std::uint32_t>(inside + end - begin))) {
                    break;
                }
                queued = true;
            }
        }
    }
    if (queued) {
        hand_to_workers(file);
    }
}

void used_ahead(File& file, Page& page) noexcept {
    if (page.ahead) {
        page.ahead = false;
        ++file.statistics.ahead_used;
        file.payoff.guesses = std::min(file.payoff.guesses + 1, 16);
    }
}

void wasted_ahead(File& file) noexcept {
    Statistics& counted = file.statistics;
    ++counted.ahead_unused;
    if (counted.ahead_started >= 8 && counted.ahead_unused * 4 > counted.ahead_started * most_unused_quarters) {
        file.payoff.ahead_off = pause_calls;
    }
}

bool count_call(File& file, bool hit) noexcept {
    if (file.watching) [[unlikely]] {
        return false;
    }
    file.payoff.window_hits += hit ? 1 : 0;
    const std::uint32_t calls = file.payoff.dormant_calls == 0 ? window : window_after_sleep;
    if (++file.payoff.window_calls < calls) {
        return false;
    }
    const std::uint32_t least_hits = calls / (quick_calls(file) ? calls_a_hit_in_memory : calls_a_hit);
    const bool pays = file.payoff.window_hits >= least_hits || file.rule->eager;
    file.payoff.guesses = std::min(file.payoff.guesses + (file.payoff.window_hits * 2 > calls ? 4 : 0), 16);
    file.payoff.window_calls = file.payoff.window_hits = 0;
    if (pays) {
        file.payoff.dormant_calls = 0;
        return false;
    }
    file.payoff.dormant_calls = longer_sleep(file);
    ++file.statistics.dormant;
    file.payoff.guesses = 1;
    return true;
}

bool count_lock(File& file) noexcept {
    const Statistics& counted = file.statistics;
    const Locking before = file.locking;
    Locking& now = file.locking;
    now.hits = counted.read.hits + counted.write.hits;
    now.asked = counted.read.asked_bytes;
    now.below = counted.read.below_bytes;
    const bool much_in_vain = now.below - before.below > most_read_for_one * (now.asked - before.asked);
    now.vain = now.hits - before.hits < least_hits_a_lock || much_in_vain ? before.vain + 1 : 0;
    if (now.vain < vain_locks) {
        return false;
    }
    now.vain = vain_locks - 1;  // after the sleep the next one like these is enough
    file.payoff.dormant_calls = longer_sleep(file);
    ++file.statistics.dormant;
    return true;
}

std::uint32_t longer_sleep(const File& file) noexcept {
    return std::min(file.payoff.dormant_calls == 0 ? 4 * window : file.payoff.dormant_calls * 2, longest_sleep);
}

}  // namespace sonde::buffer
