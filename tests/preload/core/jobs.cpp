// SPDX-License-Identifier: Apache-2.0
// Tests each request of a job that loads or writes one page, and the effect of each result.
#include "cache/page_transfer.hpp"

#include "buffered.hpp"
#include "cache/writeback.hpp"
#include "model/state.hpp"
#include "workers/pool.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using namespace under_test;
using buffer::File;
using buffer::Page;
using buffer::PageActivity;
using buffer::PageRequest;
using buffer::PageTransfer;

namespace {

/// Page 1 of a file of 100,000 bytes with pages of 8 KiB; descriptors that nobody uses: 3 and 4, direct 9 and 8.
struct Waiting {
    std::unique_ptr<File> file = std::make_unique<File>();
    std::string data = std::string(8192, '.');
    settings::Rule rule;
    Page page;
    PageTransfer job;
    Waiting() {
        use("*,%process:age=600");  // nothing becomes old while a test runs
        file->rule = &rule;
        file->size = 100'000;
        file->pages.page_size = 8192;
        file->descriptors.read_fd = 3;
        file->descriptors.write_fd = 4;
        file->queued_pool_generation = buffer::pool.generation;  // no worker shall see it
        page.index = 1;
        page.data = data.data();
    }
    void by_direct() {
        file->descriptors.direct_read_fd = 9;
        file->descriptors.direct_write_fd = 8;
        file->descriptors.direct_alignment = 4096;
    }
    void dirty(std::uint32_t begin, std::uint32_t end) {
        page.dirty.add(begin, end);
        page.valid.add(begin, end);
        if (!page.is_dirty) {
            buffer::mark_page_dirty(*file, page);
        }
    }
    /// "descriptor: bytes at place in page > offset in file", or "" when there is none.
    std::string next() {
        PageRequest request{};
        if (!job.make_next_request(request)) {
            return "";
        }
        return std::to_string(request.fd) + ": " + std::to_string(request.bytes) + " at " +
               std::to_string(request.data - page.data) + " > " + std::to_string(request.offset);
    }
};

}  // namespace

TEST_CASE("page_load_repeats_short_reads_and_fills_zeros") {
    Waiting fixture;
    fixture.page.activity = PageActivity::Queued;
    fixture.page.is_read_ahead = true;
    fixture.file->pages.queued_for_read_ahead = 1;
    REQUIRE(fixture.job.begin_load(*fixture.file, fixture.page, 0, 8192));
    CHECK(fixture.file->pages.queued_for_read_ahead == 0);
    CHECK(fixture.page.activity == PageActivity::Loading);
    CHECK(fixture.file->active_calls.in_storage == 1);
    CHECK_FALSE(fixture.job.writes());
    CHECK(fixture.next() == "3: 8192 at 0 > 8192");
    fixture.job.store_result(5000);
    CHECK(fixture.next() == "3: 3192 at 5000 > 13192");
    fixture.job.store_result(-EINTR);
    CHECK(fixture.next() == "3: 3192 at 5000 > 13192");
    fixture.job.store_result(0);
    CHECK(fixture.data.substr(5000) == std::string(3192, '\0'));
    CHECK(fixture.data.substr(0, 5000) == std::string(5000, '.'));
    CHECK(fixture.next() == "");
    CHECK(fixture.job.finish(700) == 0);
    CHECK(fixture.page.valid.covers(0, 8192));
    CHECK(fixture.page.is_read_ahead);
    CHECK(fixture.page.activity == PageActivity::No);
    CHECK(fixture.file->active_calls.in_storage == 0);
    CHECK(fixture.file->statistics.read.storage_calls == 1);
    CHECK(fixture.file->statistics.read.storage_bytes == 5000);
    CHECK(fixture.file->statistics.read.storage_ns == 700);
    CHECK(fixture.file->statistics.write.storage_calls == 0);
}

TEST_CASE("page_load_stops_at_end_of_file") {
    Waiting fixture;
    fixture.file->size = 8192 + 1808;
    REQUIRE(fixture.job.begin_load(*fixture.file, fixture.page, 100, 8192));
    CHECK(fixture.next() == "3: 1708 at 100 > 8292");
    Waiting behind;
    behind.file->size = 8192 + 100;
    CHECK_FALSE(behind.job.begin_load(*behind.file, behind.page, 100, 8192));
    CHECK(behind.page.activity == PageActivity::No);
    CHECK(behind.file->active_calls.in_storage == 0);
    behind.file->size = 10;
    CHECK_FALSE(behind.job.begin_load(*behind.file, behind.page, 0, 8192));
}

TEST_CASE("load reads only gaps of a page, its data may be newer") {
    Waiting fixture;
    fixture.by_direct();
    fixture.page.valid.add(4096, 5000);
    REQUIRE(fixture.job.begin_load(*fixture.file, fixture.page, 0, 8000));
    CHECK(fixture.next() == "3: 4096 at 0 > 8192");  // not past the kernel's cache: not all of the page is replaced
    fixture.job.store_result(4096);
    CHECK(fixture.next() == "3: 3000 at 5000 > 13192");
    fixture.job.store_result(3000);
    CHECK(fixture.next() == "");
    CHECK(fixture.job.finish(1) == 0);
    CHECK(fixture.page.valid.count() == 1);
    CHECK(fixture.page.valid.covers(0, 8000));
    CHECK(fixture.file->statistics.read.storage_calls == 2);
}

TEST_CASE("direct_load_reads_sectors_and_falls_back") {
    Waiting fixture;
    fixture.by_direct();
    REQUIRE(fixture.job.begin_load(*fixture.file, fixture.page, 0, 5000));
    CHECK(fixture.next() == "9: 8192 at 0 > 8192");
    fixture.job.store_result(8192);
    CHECK(fixture.next() == "");
    CHECK(fixture.job.finish(1) == 0);
    CHECK(fixture.file->statistics.read.storage_bytes == 5000);
    CHECK(fixture.page.valid.covers(0, 5000));
    CHECK_FALSE(fixture.page.valid.covers(0, 5001));
    Waiting refused;
    refused.by_direct();
    REQUIRE(refused.job.begin_load(*refused.file, refused.page, 0, 4096));
    CHECK(refused.next() == "9: 4096 at 0 > 8192");
    refused.job.store_result(-EINVAL);
    CHECK(refused.next() == "3: 4096 at 0 > 8192");
    refused.job.store_result(4096);
    CHECK(refused.job.finish(1) == 0);
    for (const auto& [begin, end] : {std::pair{0U, 4095U}, std::pair{100U, 8192U}}) {
        Waiting small;  // less than a sector, or not from its beginning
        small.by_direct();
        REQUIRE(small.job.begin_load(*small.file, small.page, begin, end));
        CHECK(small.next().substr(0, 2) == "3:");
    }
    Waiting last;
    last.by_direct();
    last.file->pages.page_size = 7000;  // a page that is no multiple of sectors: not beyond its memory
    last.page.index = 0;
    REQUIRE(last.job.begin_load(*last.file, last.page, 0, 7000));
    CHECK(last.next() == "9: 7000 at 0 > 0");
}

TEST_CASE("load error ends the read and preserves data of the page") {
    Waiting fixture;
    fixture.page.is_read_ahead = true;
    REQUIRE(fixture.job.begin_load(*fixture.file, fixture.page, 0, 8192));
    CHECK(fixture.next() != "");
    fixture.job.store_result(100);
    CHECK(fixture.next() != "");
    fixture.job.store_result(-EIO);
    CHECK(fixture.next() == "");
    CHECK(fixture.job.finish(1) == -EIO);
    CHECK(fixture.page.valid.empty());
    CHECK_FALSE(fixture.page.is_read_ahead);  // the program's own read will meet the error
    CHECK(fixture.page.activity == PageActivity::No);
    CHECK(fixture.file->errors.count == 0);
}

TEST_CASE("fragmented_page_keeps_dirty_and_fresh_ranges") {
    Waiting fixture;
    fixture.page.dirty.add(8000, 8010);
    for (std::uint32_t range = 0; range < buffer::RangeSet::capacity - 1; ++range) {
        fixture.page.valid.add(range * 20, range * 20 + 10);
    }
    fixture.page.valid.add(8000, 8010);
    REQUIRE_FALSE(fixture.page.valid.has_room());
    REQUIRE(fixture.job.begin_load(*fixture.file, fixture.page, 7000, 7100));
    CHECK(fixture.next() == "3: 100 at 7000 > 15192");
    fixture.job.store_result(100);
    CHECK(fixture.job.finish(1) == 0);
    CHECK(fixture.page.valid.count() == 2);
    CHECK(fixture.page.valid.covers(7000, 7100));
    CHECK(fixture.page.valid.covers(8000, 8010));
}

TEST_CASE("dirty_ranges_are_written_one_by_one_direct_if_aligned") {
    Waiting fixture;
    fixture.by_direct();
    fixture.dirty(0, 4096);
    fixture.dirty(5000, 5100);
    fixture.page.is_written_past = true;
    fixture.job.begin_write(*fixture.file);
    CHECK(fixture.file->dirty.pages == 0);
    CHECK(fixture.file->dirty.first == nullptr);
    CHECK(fixture.page.activity == PageActivity::Writing);
    CHECK_FALSE(fixture.page.is_written_past);
    CHECK(fixture.file->active_calls.is_write_in_flight);
    CHECK(fixture.file->active_calls.in_storage == 1);
    CHECK(fixture.job.writes());
    CHECK(fixture.next() == "8: 4096 at 0 > 8192");
    fixture.job.store_result(4096);
    CHECK(fixture.next() == "4: 100 at 5000 > 13192");
    fixture.job.store_result(60);
    CHECK(fixture.next() == "4: 40 at 5060 > 13252");
    fixture.job.store_result(40);
    CHECK(fixture.next() == "");
    CHECK(fixture.job.finish(5) == 0);
    CHECK_FALSE(fixture.file->active_calls.is_write_in_flight);
    CHECK(fixture.file->statistics.write.storage_calls == 2);
    CHECK(fixture.file->statistics.write.storage_bytes == 4196);
    CHECK(fixture.page.dirty.empty());
    CHECK(fixture.page.valid.covers(0, 4096));
    for (const auto& [begin, end] : {std::pair{1U, 4096U}, std::pair{0U, 4095U}}) {
        Waiting odd;
        odd.by_direct();
        odd.dirty(begin, end);
        odd.job.begin_write(*odd.file);
        CHECK(odd.next().substr(0, 2) == "4:");
    }
}

TEST_CASE("refused_write_stays_first_and_retries_after_a_second") {
    for (const int answer : {-ENOSPC, 0}) {
        Waiting fixture;
        fixture.dirty(0, 100);
        fixture.dirty(200, 300);
        fixture.dirty(400, 500);
        Page later;
        buffer::mark_page_dirty(*fixture.file, later);
        fixture.job.begin_write(*fixture.file);
        CHECK(fixture.next() == "4: 100 at 0 > 8192");
        fixture.job.store_result(100);
        CHECK(fixture.next() == "4: 100 at 200 > 8392");
        fixture.job.store_result(30);
        CHECK(fixture.next() == "4: 70 at 230 > 8422");
        fixture.job.store_result(answer);  // a write of nothing is an error too
        CHECK(fixture.next() == "");
        CHECK(fixture.job.finish(1) == (answer == 0 ? -EIO : -ENOSPC));
        REQUIRE(fixture.page.dirty.count() == 2);
        CHECK(fixture.page.dirty[0].begin == 230);
        CHECK(fixture.page.dirty[0].end == 300);
        CHECK(fixture.page.dirty[1].begin == 400);
        CHECK(fixture.file->dirty.first == &fixture.page);
        CHECK(fixture.file->dirty.last == &later);
        CHECK(fixture.file->dirty.pages == 2);
        CHECK(fixture.page.is_dirty);
        CHECK(fixture.file->errors.last_errno == (answer == 0 ? EIO : ENOSPC));
        CHECK(fixture.file->errors.count == 1);
        PageTransfer again;
        CHECK_FALSE(buffer::begin_next_job(*fixture.file, again));
        fixture.page.is_written_past = true;
        fixture.file->errors.retry_after_ns = 0;
        CHECK(buffer::begin_next_job(*fixture.file, again));
        CHECK(fixture.file->statistics.write_behinds_started == 1);
    }
}

TEST_CASE("dirty_page_leaves_list_from_any_position") {
    Waiting fixture;
    Page pages[4];
    for (Page& page : pages) {
        buffer::mark_page_dirty(*fixture.file, page);
    }
    CHECK(fixture.file->dirty.pages == 4);
    buffer::mark_page_clean(*fixture.file, pages[1]);
    CHECK(pages[0].dirty_next == &pages[2]);
    CHECK(pages[2].dirty_previous == &pages[0]);
    CHECK_FALSE(pages[1].is_dirty);
    buffer::mark_page_clean(*fixture.file, pages[3]);
    CHECK(fixture.file->dirty.last == &pages[2]);
    buffer::mark_page_clean(*fixture.file, pages[0]);
    CHECK(fixture.file->dirty.first == &pages[2]);
    buffer::requeue_dirty_page(*fixture.file, pages[3]);
    CHECK(fixture.file->dirty.first == &pages[3]);
    CHECK(pages[3].dirty_next == &pages[2]);
    CHECK(pages[2].dirty_previous == &pages[3]);
    CHECK(fixture.file->dirty.pages == 2);
    buffer::mark_page_clean(*fixture.file, pages[2]);
    buffer::mark_page_clean(*fixture.file, pages[3]);
    CHECK(fixture.file->dirty.first == nullptr);
    CHECK(fixture.file->dirty.last == nullptr);
    buffer::requeue_dirty_page(*fixture.file, pages[0]);
    CHECK(fixture.file->dirty.last == &pages[0]);
}

TEST_CASE("worker_writes_full_or_old_pages_before_reading_ahead") {
    const auto begins = [](auto change) {
        Waiting fixture;
        fixture.file->pages.max_pages = 10;
        fixture.dirty(0, 10);
        change(fixture);
        PageTransfer job;
        const bool begun = buffer::begin_next_job(*fixture.file, job);
        CHECK((!begun || job.writes()));
        return begun;
    };
    CHECK_FALSE(begins([](Waiting&) {}));
    CHECK(begins([](Waiting& fixture) { fixture.page.is_written_past = true; }));
    CHECK(begins([](Waiting& fixture) { fixture.page.dirty_since_ns = 1; }));
    CHECK_FALSE(begins([](Waiting& fixture) {
        fixture.page.is_written_past = true;
        fixture.file->active_calls.is_write_in_flight = true;
    }));
    CHECK_FALSE(begins([](Waiting& fixture) {
        fixture.page.is_written_past = true;
        fixture.page.activity = PageActivity::Loading;
    }));
    static Page second;
    const auto of_two = [&](std::uint32_t limit) {
        return begins([=](Waiting& fixture) {
            second = Page{};
            buffer::mark_page_dirty(*fixture.file, second);
            fixture.file->pages.max_pages = limit;
        });
    };
    CHECK(of_two(3));
    CHECK_FALSE(of_two(4));
    CHECK_FALSE(
        begins([](Waiting& fixture) { fixture.file->pages.max_pages = 1; }));  // of one page nobody is in the way
    Waiting ahead;
    ahead.file->pages.newest = &ahead.page;
    ahead.page.activity = PageActivity::Queued;
    ahead.page.load_begin = 10;
    ahead.page.load_end = 60;
    ahead.file->pages.queued_for_read_ahead = 1;
    REQUIRE(buffer::begin_next_job(*ahead.file, ahead.job));
    CHECK(ahead.next() == "3: 50 at 10 > 8202");
    Waiting behind;  // the file has become shorter since
    behind.file->pages.newest = &behind.page;
    behind.page.activity = PageActivity::Queued;
    behind.page.load_end = 60;
    behind.file->pages.queued_for_read_ahead = 1;
    behind.file->size = 8192;
    CHECK_FALSE(buffer::begin_next_job(*behind.file, behind.job));
    CHECK(behind.file->pages.queued_for_read_ahead == 0);
    CHECK(behind.page.activity == PageActivity::No);
}
