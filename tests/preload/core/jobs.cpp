// SPDX-License-Identifier: Apache-2.0
// One page on its way from or to storage, request by request: what is asked for, and what each answer means.
#include "cache/job.hpp"

#include "buffered.hpp"
#include "cache/writeback.hpp"
#include "model/state.hpp"
#include "workers/pool.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using namespace under_test;
using buffer::Busy;
using buffer::File;
using buffer::Job;
using buffer::Page;
using buffer::Request;

namespace {

/// Page 1 of a file of 100,000 bytes with pages of 8 KiB; descriptors that nobody uses: 3 and 4, direct 9 and 8.
struct Waiting {
    std::unique_ptr<File> file = std::make_unique<File>();
    std::string data = std::string(8192, '.');
    settings::Rule rule;
    Page page;
    Job job;
    Waiting() {
        use("*,%process:age=600");  // nothing becomes old while a test runs
        file->rule = &rule;
        file->size = 100'000;
        file->held.page_size = 8192;
        file->ends.reader = 3;
        file->ends.writer = 4;
        file->on_list_of = buffer::crew.number;  // no worker shall see it
        page.index = 1;
        page.data = data.data();
    }
    void by_direct() {
        file->ends.direct = 9;
        file->ends.direct_out = 8;
        file->ends.direct_align = 4096;
    }
    void dirty(std::uint32_t begin, std::uint32_t end) {
        page.dirty.add(begin, end);
        page.valid.add(begin, end);
        if (!page.is_dirty) {
            buffer::note_dirty(*file, page);
        }
    }
    /// "descriptor: bytes at place in page > offset in file", or "" when there is none.
    std::string next() {
        Request request{};
        if (!job.next(request)) {
            return "";
        }
        return std::to_string(request.fd) + ": " + std::to_string(request.bytes) + " at " +
               std::to_string(request.data - page.data) + " > " + std::to_string(request.at);
    }
};

}  // namespace

TEST_CASE("a page is read in as many calls as storage needs, and zeros follow the end of what it has") {
    Waiting one;
    one.page.busy = Busy::Queued;
    one.page.ahead = true;
    one.file->held.queued = 1;
    REQUIRE(one.job.begin_load(*one.file, one.page, 0, 8192));
    CHECK(one.file->held.queued == 0);
    CHECK(one.page.busy == Busy::Loading);
    CHECK(one.file->turns.in_flight == 1);
    CHECK_FALSE(one.job.writes());
    CHECK(one.next() == "3: 8192 at 0 > 8192");
    one.job.done(5000);
    CHECK(one.next() == "3: 3192 at 5000 > 13192");
    one.job.done(-EINTR);
    CHECK(one.next() == "3: 3192 at 5000 > 13192");
    one.job.done(0);
    CHECK(one.data.substr(5000) == std::string(3192, '\0'));
    CHECK(one.data.substr(0, 5000) == std::string(5000, '.'));
    CHECK(one.next() == "");
    CHECK(one.job.finish(700) == 0);
    CHECK(one.page.valid.covers(0, 8192));
    CHECK(one.page.ahead);
    CHECK(one.page.busy == Busy::No);
    CHECK(one.file->turns.in_flight == 0);
    CHECK(one.file->statistics.read.below == 1);
    CHECK(one.file->statistics.read.below_bytes == 5000);
    CHECK(one.file->statistics.read.below_ns == 700);
    CHECK(one.file->statistics.write.below == 0);
}

TEST_CASE("no more is read than the file has, and of a page behind its end nothing") {
    Waiting one;
    one.file->size = 8192 + 1808;
    REQUIRE(one.job.begin_load(*one.file, one.page, 100, 8192));
    CHECK(one.next() == "3: 1708 at 100 > 8292");
    Waiting behind;
    behind.file->size = 8192 + 100;
    CHECK_FALSE(behind.job.begin_load(*behind.file, behind.page, 100, 8192));
    CHECK(behind.page.busy == Busy::No);
    CHECK(behind.file->turns.in_flight == 0);
    behind.file->size = 10;
    CHECK_FALSE(behind.job.begin_load(*behind.file, behind.page, 0, 8192));
}

TEST_CASE("only the gaps of a page are read: what it holds may be newer") {
    Waiting one;
    one.by_direct();
    one.page.valid.add(4096, 5000);
    REQUIRE(one.job.begin_load(*one.file, one.page, 0, 8000));
    CHECK(one.next() == "3: 4096 at 0 > 8192");  // not past the kernel's cache: not all of the page is replaced
    one.job.done(4096);
    CHECK(one.next() == "3: 3000 at 5000 > 13192");
    one.job.done(3000);
    CHECK(one.next() == "");
    CHECK(one.job.finish(1) == 0);
    CHECK(one.page.valid.count() == 1);
    CHECK(one.page.valid.covers(0, 8000));
    CHECK(one.file->statistics.read.below == 2);
}

TEST_CASE("past the kernel's cache whole sectors are read, and what that refuses is read the ordinary way") {
    Waiting one;
    one.by_direct();
    REQUIRE(one.job.begin_load(*one.file, one.page, 0, 5000));
    CHECK(one.next() == "9: 8192 at 0 > 8192");
    one.job.done(8192);
    CHECK(one.next() == "");
    CHECK(one.job.finish(1) == 0);
    CHECK(one.file->statistics.read.below_bytes == 5000);
    CHECK(one.page.valid.covers(0, 5000));
    CHECK_FALSE(one.page.valid.covers(0, 5001));
    Waiting refused;
    refused.by_direct();
    REQUIRE(refused.job.begin_load(*refused.file, refused.page, 0, 4096));
    CHECK(refused.next() == "9: 4096 at 0 > 8192");
    refused.job.done(-EINVAL);
    CHECK(refused.next() == "3: 4096 at 0 > 8192");
    refused.job.done(4096);
    CHECK(refused.job.finish(1) == 0);
    for (const auto& [begin, end] : {std::pair{0U, 4095U}, std::pair{100U, 8192U}}) {
        Waiting small;  // less than a sector, or not from its beginning
        small.by_direct();
        REQUIRE(small.job.begin_load(*small.file, small.page, begin, end));
        CHECK(small.next().substr(0, 2) == "3:");
    }
    Waiting last;
    last.by_direct();
    last.file->held.page_size = 7000;  // a page that is no multiple of sectors: not beyond its memory
    last.page.index = 0;
    REQUIRE(last.job.begin_load(*last.file, last.page, 0, 7000));
    CHECK(last.next() == "9: 7000 at 0 > 0");
}

TEST_CASE("an error ends a read, and the page holds what it held") {
    Waiting one;
    one.page.ahead = true;
    REQUIRE(one.job.begin_load(*one.file, one.page, 0, 8192));
    CHECK(one.next() != "");
    one.job.done(100);
    CHECK(one.next() != "");
    one.job.done(-EIO);
    CHECK(one.next() == "");
    CHECK(one.job.finish(1) == -EIO);
    CHECK(one.page.valid.empty());
    CHECK_FALSE(one.page.ahead);  // the program's own read will meet the error
    CHECK(one.page.busy == Busy::No);
    CHECK(one.file->errors.count == 0);
}

TEST_CASE("a page in too many pieces keeps what is dirty and what was just read") {
    Waiting one;
    one.page.dirty.add(8000, 8010);
    for (std::uint32_t at = 0; at < buffer::RangeSet::capacity - 1; ++at) {
        one.page.valid.add(at * 20, at * 20 + 10);
    }
    one.page.valid.add(8000, 8010);
    REQUIRE_FALSE(one.page.valid.has_room());
    REQUIRE(one.job.begin_load(*one.file, one.page, 7000, 7100));
    CHECK(one.next() == "3: 100 at 7000 > 15192");
    one.job.done(100);
    CHECK(one.job.finish(1) == 0);
    CHECK(one.page.valid.count() == 2);
    CHECK(one.page.valid.covers(7000, 7100));
    CHECK(one.page.valid.covers(8000, 8010));
}

TEST_CASE("what is dirty is written range by range, whole sectors past the kernel's cache") {
    Waiting one;
    one.by_direct();
    one.dirty(0, 4096);
    one.dirty(5000, 5100);
    one.page.full = true;
    one.job.begin_write(*one.file);
    CHECK(one.file->dirty.pages == 0);
    CHECK(one.file->dirty.first == nullptr);
    CHECK(one.page.busy == Busy::Writing);
    CHECK_FALSE(one.page.full);
    CHECK(one.file->turns.writing);
    CHECK(one.file->turns.in_flight == 1);
    CHECK(one.job.writes());
    CHECK(one.next() == "8: 4096 at 0 > 8192");
    one.job.done(4096);
    CHECK(one.next() == "4: 100 at 5000 > 13192");
    one.job.done(60);
    CHECK(one.next() == "4: 40 at 5060 > 13252");
    one.job.done(40);
    CHECK(one.next() == "");
    CHECK(one.job.finish(5) == 0);
    CHECK_FALSE(one.file->turns.writing);
    CHECK(one.file->statistics.write.below == 2);
    CHECK(one.file->statistics.write.below_bytes == 4196);
    CHECK(one.page.dirty.empty());
    CHECK(one.page.valid.covers(0, 4096));
    for (const auto& [begin, end] : {std::pair{1U, 4096U}, std::pair{0U, 4095U}}) {
        Waiting odd;
        odd.by_direct();
        odd.dirty(begin, end);
        odd.job.begin_write(*odd.file);
        CHECK(odd.next().substr(0, 2) == "4:");
    }
}

TEST_CASE("what storage refuses stays dirty, at the head of the line, and is tried again a second later") {
    for (const int answer : {-ENOSPC, 0}) {
        Waiting one;
        one.dirty(0, 100);
        one.dirty(200, 300);
        one.dirty(400, 500);
        Page later;
        buffer::note_dirty(*one.file, later);
        one.job.begin_write(*one.file);
        CHECK(one.next() == "4: 100 at 0 > 8192");
        one.job.done(100);
        CHECK(one.next() == "4: 100 at 200 > 8392");
        one.job.done(30);
        CHECK(one.next() == "4: 70 at 230 > 8422");
        one.job.done(answer);  // a write of nothing is an error too
        CHECK(one.next() == "");
        CHECK(one.job.finish(1) == (answer == 0 ? -EIO : -ENOSPC));
        REQUIRE(one.page.dirty.count() == 2);
        CHECK(one.page.dirty[0].begin == 230);
        CHECK(one.page.dirty[0].end == 300);
        CHECK(one.page.dirty[1].begin == 400);
        CHECK(one.file->dirty.first == &one.page);
        CHECK(one.file->dirty.last == &later);
        CHECK(one.file->dirty.pages == 2);
        CHECK(one.page.is_dirty);
        CHECK(one.file->errors.last == (answer == 0 ? EIO : ENOSPC));
        CHECK(one.file->errors.count == 1);
        Job again;
        CHECK_FALSE(buffer::begin_next(*one.file, again));
        one.page.full = true;
        one.file->errors.retry_after_ns = 0;
        CHECK(buffer::begin_next(*one.file, again));
        CHECK(one.file->statistics.behind_started == 1);
    }
}

TEST_CASE("pages leave the line of the dirty ones from its head, its middle and its end") {
    Waiting one;
    Page pages[4];
    for (Page& page : pages) {
        buffer::note_dirty(*one.file, page);
    }
    CHECK(one.file->dirty.pages == 4);
    buffer::forget_dirty(*one.file, pages[1]);
    CHECK(pages[0].dirty_next == &pages[2]);
    CHECK(pages[2].dirty_before == &pages[0]);
    CHECK_FALSE(pages[1].is_dirty);
    buffer::forget_dirty(*one.file, pages[3]);
    CHECK(one.file->dirty.last == &pages[2]);
    buffer::forget_dirty(*one.file, pages[0]);
    CHECK(one.file->dirty.first == &pages[2]);
    buffer::note_still_dirty(*one.file, pages[3]);
    CHECK(one.file->dirty.first == &pages[3]);
    CHECK(pages[3].dirty_next == &pages[2]);
    CHECK(pages[2].dirty_before == &pages[3]);
    CHECK(one.file->dirty.pages == 2);
    buffer::forget_dirty(*one.file, pages[2]);
    buffer::forget_dirty(*one.file, pages[3]);
    CHECK(one.file->dirty.first == nullptr);
    CHECK(one.file->dirty.last == nullptr);
    buffer::note_still_dirty(*one.file, pages[0]);
    CHECK(one.file->dirty.last == &pages[0]);
}

TEST_CASE("a worker writes a page that is full or old, or when nearly all are dirty; else what is to be read ahead") {
    const auto begins = [](auto change) {
        Waiting one;
        one.file->held.limit = 10;
        one.dirty(0, 10);
        change(one);
        Job job;
        const bool begun = buffer::begin_next(*one.file, job);
        CHECK((!begun || job.writes()));
        return begun;
    };
    CHECK_FALSE(begins([](Waiting&) {}));
    CHECK(begins([](Waiting& one) { one.page.full = true; }));
    CHECK(begins([](Waiting& one) { one.page.dirty_since_ns = 1; }));
    CHECK_FALSE(begins([](Waiting& one) {
        one.page.full = true;
        one.file->turns.writing = true;
    }));
    CHECK_FALSE(begins([](Waiting& one) {
        one.page.full = true;
        one.page.busy = Busy::Loading;
    }));
    static Page second;
    const auto of_two = [&](std::uint32_t limit) {
        return begins([=](Waiting& one) {
            second = Page{};
            buffer::note_dirty(*one.file, second);
            one.file->held.limit = limit;
        });
    };
    CHECK(of_two(3));
    CHECK_FALSE(of_two(4));
    CHECK_FALSE(begins([](Waiting& one) { one.file->held.limit = 1; }));  // of one page nobody is in the way
    Waiting ahead;
    ahead.file->held.newest = &ahead.page;
    ahead.page.busy = Busy::Queued;
    ahead.page.want_begin = 10;
    ahead.page.want_end = 60;
    ahead.file->held.queued = 1;
    REQUIRE(buffer::begin_next(*ahead.file, ahead.job));
    CHECK(ahead.next() == "3: 50 at 10 > 8202");
    Waiting behind;  // the file has become shorter since
    behind.file->held.newest = &behind.page;
    behind.page.busy = Busy::Queued;
    behind.page.want_end = 60;
    behind.file->held.queued = 1;
    behind.file->size = 8192;
    CHECK_FALSE(buffer::begin_next(*behind.file, behind.job));
    CHECK(behind.file->held.queued == 0);
    CHECK(behind.page.busy == Busy::No);
}
