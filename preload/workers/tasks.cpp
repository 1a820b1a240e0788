// SPDX-License-Identifier: Apache-2.0
#include "workers/tasks.hpp"

#include "cache/work_queue.hpp"
#include "cache/writeback.hpp"
#include "model/registry.hpp"
#include "model/state.hpp"
#include "model/unlocked_scope.hpp"
#include "modes/modes.hpp"
#include "system/clock.hpp"

namespace sonde::buffer {

bool walk_over_files() noexcept {
    static bool active;  // under the lock of all files
    system::LockGuard lock_guard(state.files_lock);
    active = false;
    for_each_file([](File& file) {
        release_if_shared(file);
        release_if_grown(file);
        check_space(file);
        if (file.mode.load(std::memory_order_relaxed) == Mode::Active &&
            file.queued_pool_generation != pool.generation &&
            (file.dirty.first != nullptr || file.pages.queued_for_read_ahead > 0)) {
            enqueue_file(file);
        }
        active |= file.mode.load(std::memory_order_relaxed) == Mode::Active;
    });
    return active;
}

namespace {

/// Returns the page that was planned first, since it is needed first. Planned pages are the newest in the list.
Page* find_first_queued_page(const File& file) noexcept {
    Page* oldest = nullptr;
    std::uint32_t remaining = file.pages.queued_for_read_ahead;
    for (Page* page = file.pages.newest; page != nullptr && remaining > 0; page = page->older) {
        if (page->activity == PageActivity::Queued) {
            oldest = page;
            --remaining;
        }
    }
    return oldest;
}

}  // namespace

bool begin_next_job(File& file, PageTransfer& job) noexcept {
    Page* first = file.dirty.first;
    if (first != nullptr && !file.active_calls.is_write_in_flight && first->activity == PageActivity::No) {
        const std::uint64_t now = system::now_ns();
        const std::uint64_t age_ns = static_cast<std::uint64_t>(state.settings->limits.max_age_ms) * 1'000'000 / 2;
        const bool behind = file.dirty.pages > 1 && file.dirty.pages + 1 >= file.pages.max_pages;
        const bool early = first->is_written_past || behind;
        if ((early || now - first->dirty_since_ns > age_ns) && now >= file.errors.retry_after_ns) {
            ++file.statistics.write_behinds_started;
            job.begin_write(file);
            return true;
        }
    }
    while (Page* page = find_first_queued_page(file)) {
        if (job.begin_load(file, *page, page->load_begin, page->load_end)) {
            return true;
        }
        page->activity = PageActivity::No;
        --file.pages.queued_for_read_ahead;
    }
    return false;
}

bool do_next_job(File& file) noexcept {
    PageTransfer job;
    if (!begin_next_job(file, job)) {
        return false;
    }
    UnlockedScope unlocked(file, nullptr);
    job.execute_all();
    unlocked.end();
    job.finish(unlocked.elapsed_ns);
    return true;
}

}  // namespace sonde::buffer
