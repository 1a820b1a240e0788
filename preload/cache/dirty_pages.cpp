// SPDX-License-Identifier: Apache-2.0
#include "cache/dirty_pages.hpp"

#include "cache/work_queue.hpp"
#include "model/state.hpp"
#include "system/clock.hpp"

namespace sonde::buffer {

void mark_page_dirty(File& file, Page& page) noexcept {
    page.is_dirty = true;
    page.dirty_next = nullptr;
    page.dirty_previous = file.dirty.last;
    (file.dirty.last != nullptr ? file.dirty.last->dirty_next : file.dirty.first) = &page;
    file.dirty.last = &page;
    page.dirty_since_ns = system::clock_ns(CLOCK_MONOTONIC_COARSE);
    state.undelivered_pages.fetch_add(1, std::memory_order_relaxed);
    ++file.dirty.pages;
    if (file.dirty.pages == 1) {
        ensure_worker_threads();  // the data must reach storage, but not at once: the walks of the threads are frequent
                                  // enough
    }
}

void requeue_dirty_page(File& file, Page& page) noexcept {
    page.is_dirty = true;
    page.dirty_previous = nullptr;
    page.dirty_next = file.dirty.first;
    (file.dirty.first != nullptr ? file.dirty.first->dirty_previous : file.dirty.last) = &page;
    file.dirty.first = &page;
    state.undelivered_pages.fetch_add(1, std::memory_order_relaxed);
    ++file.dirty.pages;
}

void mark_page_clean(File& file, Page& page) noexcept {
    (page.dirty_previous != nullptr ? page.dirty_previous->dirty_next : file.dirty.first) = page.dirty_next;
    (page.dirty_next != nullptr ? page.dirty_next->dirty_previous : file.dirty.last) = page.dirty_previous;
    page.dirty_previous = page.dirty_next = nullptr;
    page.is_dirty = false;
    state.undelivered_pages.fetch_sub(1, std::memory_order_release);
    --file.dirty.pages;
}

void store_error(File& file, int error) noexcept {
    file.errors.last_errno = error;
    ++file.errors.count;
}

bool consume_error(File& file, Description& description, int& error) noexcept {
    if (description.error_seen == file.errors.count) {
        return false;
    }
    description.error_seen = file.errors.count;
    error = file.errors.last_errno;
    return true;
}

void check_appended_size(File& file, std::uint64_t bytes, std::int64_t size) noexcept {
    file.append.kernel_size += static_cast<std::int64_t>(bytes);
    if (size != file.append.kernel_size) {
        file.append.has_foreign_growth = true;
        file.append.kernel_size = size;
    }
}

}  // namespace sonde::buffer
