// SPDX-License-Identifier: Apache-2.0
// Tests exactly which bytes of which pages are read ahead for a stream.
#include "cache/readahead.hpp"

#include "buffered.hpp"
#include "cache/pages.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using namespace under_test;
using buffer::AccessForecast;
using buffer::File;

namespace {

/// A file of 64 pages of 4 KiB, whose queued jobs no worker can take before the test has checked them.
struct Queued {
    Folder folder;
    int fd = -1;
    File* file = nullptr;
    std::unique_ptr<system::LockGuard> hold;
    explicit Queued(const char* params) {
        use_measured(params);
        const std::string path = folder.path + "/data";
        REQUIRE(truncate((close(open(path.c_str(), O_CREAT | O_RDWR, 0644)), path.c_str()), 64 * 4096) == 0);
        fd = open_buffered(path, O_RDWR);
        file = &file_of(fd);
        hold = std::make_unique<system::LockGuard>(file->lock);
    }
    ~Queued() {
        hold.reset();
        CHECK(close_buffered(fd) == 0);
    }
    /// Returns the queued pages by index, each with the part to load.
    std::string pages() const {
        std::string all;
        for (std::int64_t index = 0; index < 70; ++index) {
            const buffer::Page* page = buffer::find_page(*file, index);
            if (page != nullptr && page->activity == buffer::PageActivity::Queued) {
                CHECK(page->is_read_ahead);
                all += (all.empty() ? "" : " ") + std::to_string(index) + ":" + std::to_string(page->load_begin) + "-" +
                       std::to_string(page->load_end);
            }
        }
        return all;
    }
};

constexpr AccessForecast whole_pages{.is_page_worthwhile = true, .bytes_to_load = 4096};

}  // namespace

TEST_CASE("advancing_stream_plans_next_pages") {
    Queued one("*:size=4k:count=9:prefetch=3");
    buffer::queue_read_ahead(*one.file, {.forward = 1}, whole_pages, 4096, 8192);
    buffer::queue_read_ahead(*one.file, {.forward = 2}, {.is_page_worthwhile = true, .bytes_to_load = 1023}, 4096,
                             8192);
    CHECK(one.pages() == "");
    buffer::queue_read_ahead(*one.file, {.forward = 2}, {.is_page_worthwhile = true, .bytes_to_load = 1024}, 4096,
                             8192);
    CHECK(one.pages() == "2:0-4096 3:0-4096 4:0-4096");
    CHECK(one.file->pages.queued_for_read_ahead == 3);
    CHECK(one.file->statistics.read_aheads_started == 3);
    buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 40'960, 45'056);  // as many as may wait do
    CHECK(one.pages() == "2:0-4096 3:0-4096 4:0-4096");
}

TEST_CASE("backward_stream_plans_earlier_pages") {
    Queued one("*:size=4k:count=9:prefetch=3");
    AccessForecast back = whole_pages;
    back.is_backward = true;
    buffer::queue_read_ahead(*one.file, {.backward = 2}, back, 2 * 4096, 3 * 4096);
    CHECK(one.pages() == "0:0-4096 1:0-4096");
}

TEST_CASE("no page is read ahead that begins behind the end of the file") {
    Queued one("*:size=4k:count=9:prefetch=3");
    AccessForecast dense = whole_pages;
    dense.is_dense = true;
    buffer::queue_read_ahead(*one.file, {}, dense, 61 * 4096, 62 * 4096);
    CHECK(one.pages() == "62:0-4096 63:0-4096");
}

TEST_CASE("strided_calls_plan_parts_within_one_page") {
    Queued one("*:size=4k:count=9:prefetch=4");
    const AccessForecast far{.is_page_worthwhile = false, .bytes_to_load = 0};
    buffer::queue_read_ahead(*one.file, {.step = 9000, .equal_steps = 2}, far, 100, 200);
    CHECK(one.pages() == "");
    buffer::queue_read_ahead(*one.file, {.step = 9000, .equal_steps = 3}, far, 100, 200);
    CHECK(one.pages() == "2:908-1008 4:1716-1816 6:2524-2624 8:3332-3432");
}

TEST_CASE("planned_parts_never_cross_pages_or_file_ends") {
    {
        Queued one("*:size=4k:count=9:prefetch=4");
        const AccessForecast far{.is_page_worthwhile = false, .bytes_to_load = 0};
        buffer::queue_read_ahead(*one.file, {.step = -9000, .equal_steps = 3}, far, 20'000,
                                 20'100);  // to 11,000, 2,000, -7,000
        CHECK(one.pages() == "0:2000-2100 2:2808-2908");
    }
    {
        Queued one("*:size=4k:count=9:prefetch=4");
        const AccessForecast far{.is_page_worthwhile = false, .bytes_to_load = 0};
        buffer::queue_read_ahead(*one.file, {.step = 8192, .equal_steps = 3}, far, 3996,
                                 4096);  // up to the end of a page
        CHECK(one.pages() == "2:3996-4096 4:3996-4096 6:3996-4096 8:3996-4096");
    }
    {
        Queued one("*:size=4k:count=9:prefetch=4");
        const AccessForecast far{.is_page_worthwhile = false, .bytes_to_load = 0};
        buffer::queue_read_ahead(*one.file, {.step = 8192, .equal_steps = 3}, far, 3997, 4097);
        CHECK(one.pages() == "");
        buffer::queue_read_ahead(*one.file, {.step = 8192, .equal_steps = 3}, far, 60 * 4096, 60 * 4096 + 10);
        CHECK(one.pages() == "62:0-10");
    }
}

TEST_CASE("nothing_is_read_ahead_in_a_pause_from_memory_or_without_room") {
    Queued one("*:size=4k:count=9:prefetch=3");
    one.file->profitability.best_bytes_per_us = 9000;
    buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    one.file->profitability.best_bytes_per_us = 0;
    one.file->profitability.read_ahead_pause = 1;
    buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    CHECK(one.file->profitability.read_ahead_pause == 0);
    one.file->pages.max_pages = 1;  // the only page is the one in use
    buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    CHECK(one.pages() == "");
    one.file->pages.max_pages = 2;
    buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    CHECK(one.pages() == "2:0-4096");
}

namespace {

/// A pool that queues files but has no thread.
struct StartedPool {
    StartedPool() {
        stop_pool();
        buffer::pool.running_threads = buffer::pool.max_threads_created = 1;
    }
    ~StartedPool() { buffer::reset_workers_after_fork(); }
};

}  // namespace

TEST_CASE("planned_work_enqueues_the_file") {
    const AccessForecast far{.is_page_worthwhile = false, .bytes_to_load = 0};
    for (const bool strides : {false, true}) {
        CAPTURE(strides);
        Queued one("*:size=4k:count=9:prefetch=2,%process:age=600");
        const StartedPool takes;
        const auto plan = [&](off64_t begin) {
            if (strides) {
                buffer::queue_read_ahead(*one.file, {.step = 4096, .equal_steps = 3}, far, begin, begin + 100);
            } else {
                buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, begin, begin + 100);
            }
        };
        plan(64 * 4096);  // there is nothing behind it
        CHECK(one.pages() == "");
        CHECK(buffer::pool.count == 0);
        plan(0);
        CHECK(one.pages() == (strides ? "1:0-100 2:0-100" : "1:0-4096 2:0-4096"));
        CHECK(buffer::pool.count == 1);
        CHECK(buffer::next_file() == one.file);
        one.file->queued_pool_generation = 0;
        for (buffer::Page* page = one.file->pages.oldest; page != nullptr; page = page->newer) {
            page->activity = buffer::PageActivity::No;
        }
        one.file->pages.queued_for_read_ahead = 0;
        plan(50);  // all that it wants is there
        CHECK(buffer::pool.count == 0);
        CHECK(one.file->statistics.read_aheads_started == 2);
    }
}

TEST_CASE("missing_page_plans_and_counts_nothing") {
    for (const bool strides : {false, true}) {
        CAPTURE(strides);
        Queued one("*:size=4k:count=3:prefetch=2,%process:age=600");
        const StartedPool takes;
        bool again = false;
        buffer::Page* pages[3];
        for (int i = 0; i < 3; ++i) {
            pages[i] = buffer::allocate_page(*one.file, 40 + i, again);
            REQUIRE(pages[i] != nullptr);
            pages[i]->activity = buffer::PageActivity::Loading;
        }
        if (strides) {
            buffer::queue_read_ahead(*one.file, {.step = 4096, .equal_steps = 3},
                                     {.is_page_worthwhile = false, .bytes_to_load = 0}, 0, 100);
        } else {
            buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 0, 100);
        }
        CHECK(one.pages() == "");
        CHECK(buffer::pool.count == 0);
        CHECK(one.file->pages.queued_for_read_ahead == 0);
        CHECK(one.file->statistics.read_aheads_started == 0);
        for (buffer::Page* page : pages) {
            page->activity = buffer::PageActivity::No;
        }
    }
}

TEST_CASE("written pages are removed from the read-ahead plan") {
    Queued one("*:size=4k:count=5:prefetch=2,%process:age=600");
    const StartedPool takes;
    buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 0, 100);
    REQUIRE(one.pages() == "1:0-4096 2:0-4096");
    one.hold.reset();
    char data[10] = {};
    REQUIRE(write_at(one.fd, data, 10, 4100) == 10);
    one.hold = std::make_unique<system::LockGuard>(one.file->lock);
    CHECK(one.pages() == "2:0-4096");
    const buffer::Page* written = buffer::find_page(*one.file, 1);
    REQUIRE(written != nullptr);
    CHECK(written->activity == buffer::PageActivity::No);
    CHECK_FALSE(written->is_read_ahead);
    CHECK(one.file->pages.queued_for_read_ahead == 1);
    CHECK(one.file->statistics.read_aheads_used == 0);
    buffer::next_file();
    one.file->queued_pool_generation = 0;
}

TEST_CASE("read_ahead_is_planned_once_and_skips_loaded_pages") {
    Queued one("*:size=4k:count=9:prefetch=3");
    const buffer::Stream stream{.forward = 2};
    buffer::queue_read_ahead(*one.file, stream, whole_pages, 4096, 5000);
    CHECK(one.pages() == "2:0-4096 3:0-4096 4:0-4096");
    CHECK(stream.planned_from_page == 1);
    buffer::drop_page(*one.file, *buffer::find_page(*one.file, 3));
    CHECK(one.file->pages.queued_for_read_ahead == 2);
    CHECK(one.file->statistics.read_aheads_unused == 1);
    buffer::queue_read_ahead(*one.file, stream, whole_pages, 5000, 6000);
    CHECK(one.pages() == "2:0-4096 4:0-4096");
    buffer::queue_read_ahead(*one.file, stream, whole_pages, 6000, 8193);
    CHECK(stream.planned_from_page == 2);
    CHECK(one.pages() == "2:0-4096 3:0-4096 4:0-4096");
}

TEST_CASE("planned_pages_yield_to_needed_pages_lru_first") {
    Queued one("*:size=4k:count=3:prefetch=2");
    buffer::queue_read_ahead(*one.file, {.forward = 2}, whole_pages, 0, 100);
    bool again = true;
    const buffer::Page* clean = buffer::allocate_page(*one.file, 40, again);
    REQUIRE(clean != nullptr);
    CHECK_FALSE(again);
    CHECK(one.file->pages.count == 3);
    CHECK(buffer::allocate_page(*one.file, 41, again) == clean);
    CHECK(buffer::find_page(*one.file, 40) == nullptr);
    CHECK(one.file->pages.queued_for_read_ahead == 2);
    const_cast<buffer::Page*>(clean)->activity = buffer::PageActivity::Loading;
    const buffer::Page* planned = buffer::find_page(*one.file, 1);
    CHECK(buffer::allocate_page(*one.file, 42, again) == planned);
    CHECK(one.file->pages.queued_for_read_ahead == 1);
    CHECK(one.pages() == "2:0-4096");
    CHECK_FALSE(planned->is_read_ahead);
    CHECK(one.file->statistics.read_aheads_unused == 1);
    const_cast<buffer::Page*>(clean)->activity = buffer::PageActivity::No;
}
