// SPDX-License-Identifier: Apache-2.0
// Predicts the next accesses, and decides whether buffering is profitable. Read-ahead begins once accesses form a
// stream and stops when it does not help, because a wrong prediction costs a full page.

#include "cache/readahead.hpp"

#include <algorithm>
#include "cache/pages.hpp"
#include "cache/profitability.hpp"
#include "cache/work_queue.hpp"
#include "model/state.hpp"

namespace sonde::buffer {

namespace {

constexpr std::uint32_t min_calls_of_stream = 2;  ///< in a row, before whole pages are loaded ahead
constexpr std::uint32_t min_equal_steps_of_stream = 3;
constexpr std::uint32_t max_rate_probes = 4;  ///< the first transfer may be slow for unrelated reasons
constexpr std::uint64_t max_load_bytes_in_memory = 128U << 10U;

/// Queues the load of [begin, end) of a page. Returns false if no page is free for it.
bool queue_page_load(File& file, std::int64_t index, std::uint32_t begin, std::uint32_t end) noexcept {
    bool again = false;
    Page* page = allocate_page(file, index, again, false);
    if (page == nullptr) {
        return false;
    }
    page->activity = PageActivity::Queued;
    page->is_read_ahead = true;
    page->load_begin = begin;
    page->load_end = end;
    ++file.pages.queued_for_read_ahead;
    ++file.statistics.read_aheads_started;
    return true;
}

}  // namespace

AccessForecast classify_access(File& file, Stream& stream, std::int64_t begin, std::int64_t end) noexcept {
    AccessForecast forecast = follow_stream(stream, begin, end, file.pages.page_size);
    if (!file.rule->may_suspend) {
        forecast.is_page_worthwhile = true;
        forecast.bytes_to_load = file.pages.page_size;
    } else if (is_storage_fast(file)) {
        forecast.bypasses_pages = end - begin >= min_bypass_bytes_in_memory;
        forecast.is_page_worthwhile = forecast.is_page_worthwhile && !forecast.bypasses_pages;
        forecast.bytes_to_load = std::min(forecast.bytes_to_load, max_load_bytes_in_memory);
        forecast.leaves_page_behind = forecast.is_page_worthwhile && forecast.stream_bytes > file.pages.page_size;
    } else if (file.profitability.probes < max_rate_probes && !uses_direct_io(file) &&
               end - begin >= min_bypass_bytes_in_memory) {
        // The first large calls measure the storage: if buffering gains nothing, no page is allocated and no thread
        // started.
        ++file.profitability.probes;
        forecast.bypasses_pages = true;
        forecast.is_page_worthwhile = false;
    } else if (is_rate_unknown(file)) {
        forecast.bytes_to_load = std::min(forecast.bytes_to_load, max_load_bytes_in_memory);
    }
    return forecast;
}

AccessForecast follow_stream(Stream& stream, std::int64_t begin, std::int64_t end, std::uint32_t page_size) noexcept {
    AccessForecast forecast;
    const bool first = stream.calls == 0;
    const bool forward = !first && begin == stream.last_end;
    const bool backward = !first && end == stream.last_begin;
    const std::int64_t step = begin - stream.last_begin;
    stream.forward = forward ? stream.forward + 1 : 0;
    stream.backward = backward ? stream.backward + 1 : 0;
    stream.equal_steps = !first && step == stream.step && step != 0 ? stream.equal_steps + 1 : 0;
    if (first && begin == 0) {
        stream.forward = 1;  // most files are read from front to back
    }
    stream.step = first ? 0 : step;
    const std::int64_t again = std::min(end, stream.last_end) - std::max(begin, stream.last_begin);
    forecast.new_bytes = static_cast<std::uint64_t>(end - begin - (first ? 0 : std::max<std::int64_t>(again, 0)));
    stream.last_begin = begin;
    stream.last_end = end;
    ++stream.calls;
    const std::uint32_t run = std::max(stream.forward, stream.backward);
    forecast.stream_bytes = static_cast<std::uint64_t>(run) * static_cast<std::uint64_t>(end - begin);
    forecast.is_backward = stream.backward > 0;
    forecast.is_dense = stream.equal_steps >= min_equal_steps_of_stream &&
                        std::max(step, -step) <= std::min<std::int64_t>(4 * (end - begin), page_size);
    forecast.is_page_worthwhile = run > 0 || forecast.is_dense;
    if (forecast.is_page_worthwhile) {
        // 4, 16, 64 ... times the call: a short run costs little, a long one has whole pages soon.
        const std::uint32_t steps = std::min(std::max(run, forecast.is_dense ? stream.equal_steps : 0U), 10U);
        const auto bytes = static_cast<std::uint64_t>(end - begin);
        forecast.bytes_to_load = std::max<std::uint64_t>(bytes << (2 * steps), 16384);
        forecast.is_backward = forecast.is_backward || (forecast.is_dense && step < 0);
    }
    return forecast;
}

void queue_read_ahead(File& file, const Stream& stream, const AccessForecast& forecast, std::int64_t begin,
                      std::int64_t end) noexcept {
    const std::uint32_t max_pages_ahead =
        std::min(file.pages.prefetch, file.pages.max_pages > 1 ? file.pages.max_pages - 1 : 0);
    if (max_pages_ahead == 0 || file.pages.queued_for_read_ahead >= max_pages_ahead || is_storage_fast(file) ||
        is_rate_unknown(file) || state.settings->limits.threads == 0) {
        return;
    }
    if (file.profitability.read_ahead_pause > 0) {
        --file.profitability.read_ahead_pause;
        return;
    }
    const std::int64_t size = file.pages.page_size;
    const bool steady =
        stream.forward >= min_calls_of_stream || stream.backward >= min_calls_of_stream || forecast.is_dense;
    bool queued = false;
    if (steady && forecast.bytes_to_load >= file.pages.page_size / 4) {
        const std::int64_t direction = forecast.is_backward ? -1 : 1;
        const std::int64_t from = (forecast.is_backward ? begin : end - 1) / size;
        if (stream.planned_from_page == from) {
            return;
        }
        stream.planned_from_page = from;
        for (std::int64_t k = 1; k <= max_pages_ahead && file.pages.queued_for_read_ahead < max_pages_ahead; ++k) {
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
    } else if (stream.equal_steps >= min_equal_steps_of_stream && !forecast.is_page_worthwhile) {
        for (std::int64_t k = 1; k <= max_pages_ahead && file.pages.queued_for_read_ahead < max_pages_ahead; ++k) {
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
