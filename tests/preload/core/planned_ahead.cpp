// SPDX-License-Identifier: Apache-2.0
// Which pages a stream has read ahead, with their parts, to the byte.
#include "buffer/ahead.hpp"

#include "buffer/pages.hpp"
#include "buffered.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using namespace under_test;
using buffer::File;
using buffer::Move;

namespace {

/// A file of 64 pages of 4 KiB, whose workers cannot take what is queued for them before the test has looked.
struct Queued {
    Folder folder;
    int fd = -1;
    File* file = nullptr;
    std::unique_ptr<system::Hold> hold;
    explicit Queued(const char* params) {
        use(params);
        const std::string path = folder.path + "/data";
        REQUIRE(truncate((close(open(path.c_str(), O_CREAT | O_RDWR, 0644)), path.c_str()), 64 * 4096) == 0);
        fd = open_buffered(path, O_RDWR);
        file = &file_of(fd);
        hold = std::make_unique<system::Hold>(file->lock);
    }
    ~Queued() {
        hold.reset();
        CHECK(close_buffered(fd) == 0);
    }
    /// The pages that are queued, each with the part that is wanted, by their numbers.
    std::string pages() const {
        std::string all;
        for (std::int64_t index = 0; index < 70; ++index) {
            const buffer::Page* found = buffer::find_page(*file, index);
            if (found != nullptr && found->busy == buffer::Busy::Queued) {
                CHECK(found->ahead);
                all += (all.empty() ? "" : " ") + std::to_string(index) + ":" + std::to_string(found->want_begin) +
                       "-" + std::to_string(found->want_end);
            }
        }
        return all;
    }
};

constexpr Move whole_pages{.local = true, .reach = 4096};

}  // namespace

TEST_CASE(
    "a stream that goes on has the next pages read, one that has just begun or reaches no quarter of a page none") {
    Queued one("*:size=4k:count=9:prefetch=3");
    buffer::plan_ahead(*one.file, {.forward = 1}, whole_pages, 4096, 8192);
    buffer::plan_ahead(*one.file, {.forward = 2}, {.local = true, .reach = 1023}, 4096, 8192);
    CHECK(one.pages() == "");
    buffer::plan_ahead(*one.file, {.forward = 2}, {.local = true, .reach = 1024}, 4096, 8192);
    CHECK(one.pages() == "2:0-4096 3:0-4096 4:0-4096");
    CHECK(one.file->held.queued == 3);
    CHECK(one.file->statistics.ahead_started == 3);
    buffer::plan_ahead(*one.file, {.forward = 2}, whole_pages, 40'960, 45'056);  // as many as may wait do
    CHECK(one.pages() == "2:0-4096 3:0-4096 4:0-4096");
}

TEST_CASE("a stream that goes back has the pages before it read, and none before the first") {
    Queued one("*:size=4k:count=9:prefetch=3");
    Move back = whole_pages;
    back.backward = true;
    buffer::plan_ahead(*one.file, {.backward = 2}, back, 2 * 4096, 3 * 4096);
    CHECK(one.pages() == "0:0-4096 1:0-4096");
}

TEST_CASE("no page is read ahead that begins behind the end of the file") {
    Queued one("*:size=4k:count=9:prefetch=3");
    Move dense = whole_pages;
    dense.dense = true;
    buffer::plan_ahead(*one.file, {}, dense, 61 * 4096, 62 * 4096);
    CHECK(one.pages() == "62:0-4096 63:0-4096");
}

TEST_CASE("calls at a constant distance have the parts read that they will want, and none over two pages") {
    Queued one("*:size=4k:count=9:prefetch=4");
    const Move far{.local = false, .reach = 0};
    buffer::plan_ahead(*one.file, {.step = 9000, .strides = 2}, far, 100, 200);
    CHECK(one.pages() == "");
    buffer::plan_ahead(*one.file, {.step = 9000, .strides = 3}, far, 100, 200);
    CHECK(one.pages() == "2:908-1008 4:1716-1816 6:2524-2624 8:3332-3432");
}

TEST_CASE("parts that would lie over two pages, before the file or behind it are not read ahead") {
    {
        Queued one("*:size=4k:count=9:prefetch=4");
        const Move far{.local = false, .reach = 0};
        buffer::plan_ahead(*one.file, {.step = -9000, .strides = 3}, far, 20'000, 20'100);  // to 11,000, 2,000, -7,000
        CHECK(one.pages() == "0:2000-2100 2:2808-2908");
    }
    {
        Queued one("*:size=4k:count=9:prefetch=4");
        const Move far{.local = false, .reach = 0};
        buffer::plan_ahead(*one.file, {.step = 8192, .strides = 3}, far, 3996, 4096);  // up to the end of a page
        CHECK(one.pages() == "2:3996-4096 4:3996-4096 6:3996-4096 8:3996-4096");
    }
    {
        Queued one("*:size=4k:count=9:prefetch=4");
        const Move far{.local = false, .reach = 0};
        buffer::plan_ahead(*one.file, {.step = 8192, .strides = 3}, far, 3997, 4097);
        CHECK(one.pages() == "");
        buffer::plan_ahead(*one.file, {.step = 8192, .strides = 3}, far, 60 * 4096, 60 * 4096 + 10);
        CHECK(one.pages() == "62:0-10");
    }
}

TEST_CASE("nothing is read ahead of a file that is watched, in a pause, from memory, or without workers or room") {
    Queued one("*:size=4k:count=9:prefetch=3");
    one.file->watching = true;
    buffer::plan_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    one.file->watching = false;
    one.file->payoff.best_rate = 9000;
    buffer::plan_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    one.file->payoff.best_rate = 0;
    one.file->payoff.ahead_off = 1;
    buffer::plan_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    CHECK(one.file->payoff.ahead_off == 0);
    one.file->held.limit = 1;  // the only page is the one in use
    buffer::plan_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    CHECK(one.pages() == "");
    one.file->held.limit = 2;
    buffer::plan_ahead(*one.file, {.forward = 2}, whole_pages, 4096, 8192);
    CHECK(one.pages() == "2:0-4096");
}
