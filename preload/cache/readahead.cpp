// SPDX-License-Identifier: Apache-2.0
// Predicts the next accesses, and decides whether buffering pays. Read-ahead begins once accesses form a stream and
// stops when it does not help, because a wrong prediction costs a full page.

#include "cache/readahead.hpp"

#include <algorithm>
#include "cache/pages.hpp"
#include "cache/profitability.hpp"
#include "cache/work_queue.hpp"
#include "model/state.hpp"

namespace sonde::buffer {

namespace {

constexpr std::uint32_t calls_of_a_stream = 2;  ///< in a row, before whole pages are loaded ahead
constexpr std::uint32_t strides_of_a_stream = 3;
constexpr std::int64_t large_in_memory = 8U << 10U;
constexpr std::uint32_t most_probes = 4;  ///< the first transfer may be slow for unrelated reasons
constexpr std::uint64_t reach_in_memory = 128U << 10U;

/// Queues the load of [begin, end) of a page. Returns false if no page is free for it.
bool queue_page_load(File& file, std::int64_t index, std::uint32_t begin, std::uint32_t end) noexcept {
    bool again = false;
    Page* page = allocate_page(file, index, again, false);
    if (page == nullptr) {
        return false;
    }
    page->busy = Busy::Queued;
    page->ahead = true;
    page->want_begin = begin;
    page->want_end = end;
    ++file.pages.queued;
    ++file.statistics.ahead_started;
    return true;
}

}  // namespace

Move classify_access(File& file, Stream& stream, std::int64_t begin, std::int64_t end) noexcept {
    Move move = follow_stream(stream, begin, end, file.pages.page_size);
    if (!file.rule->stands_aside) {
        move.local = true;
        move.reach = file.pages.page_size;
    } else if (is_storage_fast(file)) {
        move.straight = end - begin >= large_in_memory;
        move.local = move.local && !move.straight;
        move.reach = std::min(move.reach, reach_in_memory);
        move.passes = move.local && move.run > file.pages.page_size;
    } else if (file.payoff.probes < most_probes && !uses_direct_io(file) && end - begin >= large_in_memory) {
        // The first large calls measure the storage: if buffering gains nothing, no page is allocated and no thread
        // started.
        ++file.payoff.probes;
        move.straight = true;
        move.local = false;
    } else if (is_rate_unknown(file)) {
        move.reach = std::min(move.reach, reach_in_memory);
    }
    return move;
}

Move follow_stream(Stream& stream, std::int64_t begin, std::int64_t end, std::uint32_t page_size) noexcept {
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

void queue_read_ahead(File& file, const Stream& stream, const Move& move, std::int64_t begin,
                      std::int64_t end) noexcept {
    const std::uint32_t most = std::min(file.pages.prefetch, file.pages.limit > 1 ? file.pages.limit - 1 : 0);
    if (most == 0 || file.pages.queued >= most || is_storage_fast(file) || is_rate_unknown(file) ||
        state.settings->limits.threads == 0) {
        return;
    }
    if (file.payoff.ahead_off > 0) {
        --file.payoff.ahead_off;
        return;
    }
    const std::int64_t size = file.pages.page_size;
    const bool steady = stream.forward >= calls_of_a_stream || stream.backward >= calls_of_a_stream || move.dense;
    bool queued = false;
    if (steady && move.reach >= file.pages.page_size / 4) {
        const std::int64_t direction = move.backward ? -1 : 1;
        const std::int64_t from = (move.backward ? begin : end - 1) / size;
        if (stream.planned == from) {
            return;
        }
        stream.planned = from;
        for (std::int64_t k = 1; k <= most && file.pages.queued < most; ++k) {
            const std::int64_t index = from + direction * k;
            if (index < 0 || index * size >= file.size) {
                break;
            }
            if (find_page(file, index) == nullptr) {
                if (!queue_page_load(file, index, 0, file.pages.page_size)) {
                    break;
                }
                queued = true;
            }
        }
    } else if (stream.strides >= strides_of_a_stream && !move.local) {
        for (std::int64_t k = 1; k <= most && file.pages.queued < most; ++k) {
            const std::int64_t target = begin + stream.step * k;
            const std::int64_t index = target / size;
            const std::int64_t inside = target % size;
            if (target < 0 || target >= file.size || inside + (end - begin) > size) {
                break;
            }
            if (find_page(file, index) == nullptr) {
                if (!queue_page_load(file, index, static_cast<std::uint32_t>(inside),
                                     static_cast<std::uint32_t>(inside + end - begin))) {
                    break;
                }
                queued = true;
            }
        }
    }
    if (queued) {
        enqueue_file(file);
    }
}

}  // namespace sonde::buffer
