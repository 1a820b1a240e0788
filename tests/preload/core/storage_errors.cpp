// SPDX-License-Identifier: Apache-2.0
// Storage that refuses, interrupts or moves less than it was asked for, and somebody who comes between: what the
// program is told of it, and what is kept.
#include "dirty_file.hpp"

#include "cache/pages.hpp"
#include "cache/writeback.hpp"
#include "model/state.hpp"
#include "system/clock.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <functional>
#include <string>

using namespace under_test;
using buffer::File;
using buffer::Page;
using buffer::state;

namespace {

std::function<ssize_t(void*, std::size_t, off64_t)> read_hook;         // NOLINT(*-err58-cpp): empty
std::function<ssize_t(const void*, std::size_t, off64_t)> write_hook;  // NOLINT(*-err58-cpp)

/// A file of 64 KiB of '-' on storage with scripted results; no worker thread runs.
struct Storage {
    Folder folder;
    std::string path = folder.path + "/data";
    std::string data = std::string(1 << 16, 'x');
    int fd = -1;
    File* file = nullptr;
    explicit Storage(const char* params = "*:size=4k:count=8:prefetch=0,%process:threads=0:age=600") {
        stop_pool();
        use_measured(params);
        const int new_file = open(path.c_str(), O_CREAT | O_RDWR, 0644);
        const std::string content(1 << 16, '-');
        REQUIRE(::write(new_file, content.data(), content.size()) == 1 << 16);
        close(new_file);
        fd = open_buffered(path, O_RDWR);
        file = &file_of(fd);
        file->profitability.probes = 9;  // not to see how fast storage is
    }
    ~Storage() {
        read_hook = nullptr;
        write_hook = nullptr;
        state.storage = {.pread = read_below, .pwrite = write_below};
        CHECK(close_buffered(fd) == 0);
    }
    static void reads_by(std::function<ssize_t(void*, std::size_t, off64_t)> hook) {
        read_hook = std::move(hook);
        state.storage.pread = [](int, void* to, std::size_t bytes, off64_t offset) {
            return read_hook(to, bytes, offset);
        };
    }
    static void writes_by(std::function<ssize_t(const void*, std::size_t, off64_t)> hook) {
        write_hook = std::move(hook);
        state.storage.pwrite = [](int, const void* from, std::size_t bytes, off64_t offset) {
            return write_hook(from, bytes, offset);
        };
    }
    ssize_t read(std::size_t bytes, off64_t offset) { return read_at(fd, data.data(), bytes, offset); }
    ssize_t write(std::size_t bytes, off64_t offset) { return write_at(fd, data.data(), bytes, offset); }
};

ssize_t refused(int error) {
    errno = error;
    return -1;
}

}  // namespace

TEST_CASE("straight_read_repeats_after_interrupt") {
    Storage fixture;
    int calls = 0;
    fixture.reads_by([&](void* to, std::size_t bytes, off64_t offset) {
        ++calls;
        return calls == 1   ? refused(EINTR)
               : calls == 2 ? pread64(fixture.fd, to, 30, offset)
                            : pread64(fixture.fd, to, bytes, offset);
    });
    CHECK(fixture.read(100, 40'000) == 100);
    CHECK(calls == 3);
    CHECK(fixture.data.substr(0, 100) == std::string(100, '-'));
    CHECK(fixture.file->statistics.read.storage_calls == 1);
    CHECK(fixture.file->statistics.read.storage_bytes == 100);
    CHECK(fixture.file->statistics.read.hits == 0);
    fixture.reads_by([](void*, std::size_t, off64_t) { return refused(EIO); });
    CHECK(fixture.read(100, 20'000) == -EIO);
    CHECK(fixture.file->statistics.read.storage_calls == 2);
    calls = 0;
    fixture.reads_by([&](void* to, std::size_t, off64_t offset) {
        return calls++ == 0 ? pread64(fixture.fd, to, 60, offset) : refused(EIO);
    });
    CHECK(fixture.read(100, 30'000) == 60);
    CHECK(fixture.file->statistics.read.storage_bytes == 160);
    CHECK(fixture.file->active_calls.in_storage == 0);
    // Bytes below the file size that storage does not have read as zeros.
    fixture.reads_by([](void*, std::size_t, off64_t) { return 0; });
    fixture.data.assign(fixture.data.size(), 'x');
    CHECK(fixture.read(100, 10'000) == 100);
    CHECK(fixture.data.substr(0, 101) == std::string(100, '\0') + "x");
}

TEST_CASE("read_error_midway_returns_bytes_before_it") {
    Storage fixture("*:size=4k:count=8:prefetch=0,%process:threads=0:age=600");
    fixture.file->rule->may_suspend = false;
    fixture.reads_by([&](void* to, std::size_t bytes, off64_t offset) {
        return offset < 8192 ? pread64(fixture.fd, to, bytes, offset) : refused(EIO);
    });
    CHECK(fixture.read(100, 8192) == -EIO);
    CHECK(fixture.read(5000, 4096) == 4096);
    CHECK(fixture.read(4200, 8100) == 92);
    char head[50], tail[50], rest[50];
    const buffer::IoPart parts[] = {{head, 50}, {tail, 50}, {rest, 50}};
    CHECK(buffer::read(fixture.fd, parts, 3, 8192 - 60).value == 60);
    CHECK(buffer::read(fixture.fd, parts, 3, 8192).value == -EIO);
}

TEST_CASE("straight_write_repeats_after_interrupt") {
    Storage fixture;
    int calls = 0;
    fixture.writes_by([&](const void* from, std::size_t bytes, off64_t offset) {
        return calls++ == 0 ? refused(EINTR) : pwrite64(fixture.fd, from, bytes, offset);
    });
    CHECK(fixture.write(100, 40'000) == 100);
    CHECK(calls == 2);
    CHECK(fixture.file->statistics.write.storage_calls == 1);
    CHECK(fixture.file->statistics.write.storage_bytes == 100);
    fixture.writes_by([&](const void* from, std::size_t bytes, off64_t offset) {
        return pwrite64(fixture.fd, from, bytes / 2, offset);
    });
    CHECK(fixture.write(100, 20'000) == 50);
    CHECK(fixture.file->statistics.write.storage_bytes == 150);
    fixture.writes_by([](const void*, std::size_t, off64_t) { return 0; });
    CHECK(fixture.write(100, 10'000) == 0);
    fixture.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
    CHECK(fixture.write(100, 50'000) == -ENOSPC);
    CHECK(fixture.file->size == 1 << 16);
    CHECK(fixture.file->active_calls.in_storage == 0);
    CHECK_FALSE(fixture.file->active_calls.is_program_writing);
    CHECK(fixture.file->errors.count == 0);  // the call itself has reported the error
    fixture.writes_by(
        [&](const void* from, std::size_t bytes, off64_t offset) { return pwrite64(fixture.fd, from, bytes, offset); });
    CHECK(fixture.write(100, 100'000) == 100);  // behind the end
    CHECK(fixture.file->size == 100'100);
}

TEST_CASE("write_error_midway_returns_bytes_before_it") {
    Storage fixture;
    fixture.writes_by([&](const void* from, std::size_t bytes, off64_t offset) {
        return offset < 20'000 ? pwrite64(fixture.fd, from, bytes, offset) : refused(ENOSPC);
    });
    std::string first(50, 'a'), second(50, 'b');
    buffer::IoPart parts[] = {{first.data(), 50}, {second.data(), 50}};
    CHECK(buffer::write(fixture.fd, parts, 2, 19'960).value == 50);
    CHECK(contents(fixture.path).substr(19'960, 50) == first);
    CHECK(buffer::write(fixture.fd, parts, 2, 30'000).value == -ENOSPC);
    int calls = 0;
    fixture.writes_by([&](const void* from, std::size_t bytes, off64_t offset) {
        ++calls;
        return pwrite64(fixture.fd, from, std::min<std::size_t>(bytes, 20), offset);
    });
    CHECK(buffer::write(fixture.fd, parts, 2, 40'000).value == 20);  // and does not go on with the next part
    CHECK(calls == 1);
}

TEST_CASE("refused_earlier_write_blocks_straight_writes") {
    Storage fixture;
    REQUIRE(fixture.write(100, 1 << 16) == 100);  // at the end: stays here
    REQUIRE(buffer::has_dirty_pages(fixture.fd));
    fixture.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
    CHECK(fixture.write(100, 40'000) == -ENOSPC);
    CHECK(fixture.file->errors.count == 1);  // reported by this call
    fixture.writes_by(
        [&](const void* from, std::size_t bytes, off64_t offset) { return pwrite64(fixture.fd, from, bytes, offset); });
    CHECK(fixture.write(100, 40'000) == 100);
    CHECK(contents(fixture.path).size() == (1 << 16) + 100);
    REQUIRE(fixture.write(100, (1 << 16) + 100) == 100);
    fixture.writes_by([](const void*, std::size_t, off64_t) { return refused(EDQUOT); });
    fixture.file->lock.lock();
    CHECK(buffer::flush_file(*fixture.file) == -EDQUOT);
    fixture.file->lock.unlock();
    fixture.writes_by(
        [&](const void* from, std::size_t bytes, off64_t offset) { return pwrite64(fixture.fd, from, bytes, offset); });
    fixture.file->lock.lock();
    CHECK(buffer::flush_file(*fixture.file) == 0);
    fixture.file->lock.unlock();
    int error = 0;
    CHECK(buffer::consume_error(*fixture.file, *buffer::table[fixture.fd].load(), error));
    CHECK(error == EDQUOT);
    CHECK_FALSE(buffer::consume_error(*fixture.file, *buffer::table[fixture.fd].load(), error));
}

TEST_CASE("straight_write_invalidates_pages_but_keeps_newer_data") {
    Storage fixture;
    fixture.writes_by([&](const void* from, std::size_t bytes, off64_t offset) {
        // Another thread meanwhile loads the old content of pages 4 to 7, and writes 20 bytes of page 5 after this
        // write.
        fixture.file->lock.lock();
        for (std::int64_t index = 4; index < 8; ++index) {
            bool again = false;
            Page* page = buffer::allocate_page(*fixture.file, index, again);
            REQUIRE(page != nullptr);
            CHECK(buffer::load_page_range(*fixture.file, *page, 0, 4096, false) == 0);
        }
        Page* dirty = buffer::find_page(*fixture.file, 5);
        dirty->dirty.add(100, 120);
        buffer::mark_page_dirty(*fixture.file, *dirty);
        fixture.file->lock.unlock();
        return pwrite64(fixture.fd, from, bytes, offset);
    });
    fixture.file->profitability.best_bytes_per_us = 1U << 30U;  // large calls bypass the buffer
    REQUIRE(fixture.write(3 * 4096 - 10, 4 * 4096) == 3 * 4096 - 10);
    CHECK(buffer::find_page(*fixture.file, 4) == nullptr);
    CHECK(buffer::find_page(*fixture.file, 6) == nullptr);
    CHECK(buffer::find_page(*fixture.file, 7) != nullptr);
    const Page* newer = buffer::find_page(*fixture.file, 5);
    REQUIRE(newer != nullptr);
    CHECK(newer->valid.count() == 1);
    CHECK(newer->valid.covers(100, 120));
    CHECK(newer->valid.bytes() == 20);
}

TEST_CASE("refilled_page_after_refusal_is_full_again") {
    Storage fixture("*:size=4k:count=4,%process:threads=0:age=600");
    fixture.file->rule->may_suspend = false;
    REQUIRE(fixture.write(4000, 0) == 4000);
    REQUIRE(fixture.write(96, 4000) == 96);
    Page* page = buffer::find_page(*fixture.file, 0);
    REQUIRE(page != nullptr);
    CHECK(page->is_written_past);
    fixture.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
    const std::uint64_t before = system::now_ns();
    CHECK(buffer::flush_descriptor(fixture.fd) == ENOSPC);
    CHECK_FALSE(page->is_written_past);
    CHECK(fixture.file->errors.retry_after_ns >= before + 1'000'000'000);
    CHECK(fixture.file->errors.retry_after_ns <= system::now_ns() + 1'000'000'000);
    fixture.writes_by(
        [&](const void* from, std::size_t bytes, off64_t offset) { return pwrite64(fixture.fd, from, bytes, offset); });
    REQUIRE(fixture.write(10, 100) == 10);
    CHECK(page->is_written_past);
    CHECK(buffer::flush_descriptor(fixture.fd) == 0);
    REQUIRE(fixture.write(10, 100) == 10);
    CHECK_FALSE(page->is_written_past);
}

TEST_CASE("refused_data_is_lost_with_last_writer_only") {
    for (const bool another : {true, false}) {
        CAPTURE(another);
        Storage fixture;
        const int other = open_buffered(fixture.path, another ? O_WRONLY : O_RDONLY);
        const int closing = open_buffered(fixture.path, O_RDWR);
        REQUIRE(close_buffered(fixture.fd) == 0);
        fixture.fd = other;
        REQUIRE(write_at(closing, fixture.data.data(), 100, 1 << 16) == 100);
        fixture.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
        CHECK(close_buffered(closing) == ENOSPC);
        CHECK(buffer::has_dirty_pages(other) == another);
        CHECK(fixture.file->size == (another ? (1 << 16) + 100 : 1 << 16));
        CHECK(fixture.file->pages.count == (another ? 1 : 0));
        fixture.writes_by([&](const void* from, std::size_t bytes, off64_t offset) {
            return pwrite64(another ? other : -1, from, bytes, offset);
        });
        CHECK(buffer::flush_descriptor(other) == ENOSPC);  // each error is reported once
        CHECK(contents(fixture.path).size() == (another ? (1 << 16) + 100 : 1 << 16));
        CHECK_FALSE(buffer::has_dirty_pages(other));
    }
}

TEST_CASE("space_below_4_GiB_counts_as_low") {
    struct statfs about {};
    about.f_bsize = 4096;
    about.f_blocks = 1U << 30U;
    about.f_bavail = (1U << 20U) - 1;
    CHECK(buffer::is_space_low(about));
    about.f_bavail = 1U << 20U;
    CHECK_FALSE(buffer::is_space_low(about));
    about.f_blocks = about.f_bavail = 0;
    CHECK_FALSE(buffer::is_space_low(about));  // a file system that reports no free space
}

TEST_CASE("all_pages_refused_sends_writes_straight") {
    Storage fixture("*:size=4k:count=2:prefetch=0,%process:threads=0:age=600");
    fixture.file->rule->may_suspend = false;
    REQUIRE(fixture.write(10, 0) == 10);
    REQUIRE(fixture.write(10, 4096) == 10);
    int calls = 0;
    fixture.writes_by([&](const void*, std::size_t, off64_t) {
        ++calls;
        return refused(ENOSPC);
    });
    CHECK(fixture.write(10, 8192) == -ENOSPC);
    CHECK(calls == 2);  // to make room, and then what came before
    CHECK(fixture.file->dirty.pages == 2);
    CHECK(fixture.read(100, 12'288) == 100);  // without a page
    CHECK(fixture.file->pages.count == 2);
    fixture.writes_by(
        [&](const void* from, std::size_t bytes, off64_t offset) { return pwrite64(fixture.fd, from, bytes, offset); });
    CHECK(buffer::flush_descriptor(fixture.fd) == ENOSPC);
    CHECK(buffer::flush_descriptor(fixture.fd) == 0);
    CHECK(contents(fixture.path).substr(4096, 10) == std::string(10, 'x'));
}

TEST_CASE("fragmented_page_is_flushed_and_its_error_ends_call") {
    Storage fixture("*:size=4k:count=2:prefetch=0,%process:threads=0:age=600");
    fixture.file->rule->may_suspend = false;
    for (std::uint32_t i = 0; i < buffer::RangeSet::capacity; ++i) {
        REQUIRE(fixture.write(1, i * 10) == 1);
    }
    CHECK(fixture.file->statistics.write.storage_calls == 0);
    fixture.writes_by([](const void*, std::size_t, off64_t) { return refused(EDQUOT); });
    CHECK(fixture.write(1, 3000) == -EDQUOT);
    std::string first(10, 'a'), second(10, 'b');
    const buffer::IoPart parts[] = {{first.data(), 10}, {second.data(), 10}};
    CHECK(buffer::write(fixture.fd, parts, 2, 3000).value == -EDQUOT);
    fixture.writes_by(
        [&](const void* from, std::size_t bytes, off64_t offset) { return pwrite64(fixture.fd, from, bytes, offset); });
    CHECK(fixture.write(1, 3000) == 1);
    CHECK(fixture.file->statistics.write.storage_calls >= buffer::RangeSet::capacity);
    CHECK(fixture.file->dirty.pages == 1);  // of the byte that came now
    CHECK(fixture.file->dirty.first->dirty.bytes() == 1);
}

TEST_CASE("behind the end of a file there is nothing to load") {
    Storage fixture;
    fixture.file->lock.lock();
    bool again = false;
    Page* page = buffer::allocate_page(*fixture.file, 16, again);
    REQUIRE(page != nullptr);
    CHECK(buffer::load_page_range(*fixture.file, *page, 0, 4096, true) == 0);
    CHECK(page->valid.empty());
    CHECK(fixture.file->statistics.read.storage_calls == 0);
    CHECK(fixture.file->statistics.wait_ns == 0);
    buffer::drop_page(*fixture.file, *page);
    fixture.file->lock.unlock();
}

TEST_CASE("fragmented_clean_ranges_are_forgotten_on_write") {
    Storage fixture;
    fixture.file->lock.lock();
    bool again = false;
    Page* page = buffer::allocate_page(*fixture.file, 3, again);
    REQUIRE(page != nullptr);
    for (std::uint32_t i = 0; i < buffer::RangeSet::capacity; ++i) {
        page->valid.add(i * 20, i * 20 + 5);
    }
    fixture.file->lock.unlock();
    CHECK(fixture.write(10, 3 * 4096 + 2000) == 10);
    CHECK(page->valid.bytes() == 10);
    CHECK(page->dirty.bytes() == 10);
    CHECK(fixture.file->statistics.write.storage_calls == 0);
}

TEST_CASE("error_that_no_call_reported_is_printed_at_the_end") {
    Folder folder;
    const auto printed = [&](bool fails) {
        const std::string output = folder.path + (fails ? "/bad" : "/good");
        const bool done = in_child([&] {
            const int to = open(output.c_str(), O_WRONLY | O_CREAT, 0644);
            dup2(to, 2);
            Storage fixture;
            fixture.file->rule->may_suspend = false;
            Storage::writes_by([&](const void*, std::size_t bytes, off64_t) -> ssize_t {
                errno = EIO;
                return fails ? -1 : static_cast<ssize_t>(bytes);
            });
            const bool accepted = fixture.write(100, 20'000) == 100;
            buffer::finish_buffering();
            buffer::finish_buffering();
            _exit(accepted ? 0 : 1);
            return accepted;
        });
        CHECK(done);
        return contents(output);
    };
    const std::string line = printed(true);
    CHECK(line.find("/data: a delayed write failed (EIO, input/output error), and no call") != std::string::npos);
    CHECK(line.find('\n') == line.size() - 1);
    CHECK(printed(false).empty());
}
