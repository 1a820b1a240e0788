// SPDX-License-Identifier: Apache-2.0
// Storage that refuses, interrupts or moves less than it was asked for, and somebody who comes between: what the
// program is told of it, and what is kept.
#include "held.hpp"

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

/// A file of 64 KiB of '-' on storage that answers as the test says; nobody but the program works.
struct Storage {
    Folder folder;
    std::string path = folder.path + "/data";
    std::string data = std::string(1 << 16, 'x');
    int fd = -1;
    File* file = nullptr;
    explicit Storage(const char* params = "*:size=4k:count=8:prefetch=0,%process:threads=0:age=600") {
        dismiss_crew();
        use_measured(params);
        const int made = open(path.c_str(), O_CREAT | O_RDWR, 0644);
        const std::string content(1 << 16, '-');
        REQUIRE(::write(made, content.data(), content.size()) == 1 << 16);
        close(made);
        fd = open_buffered(path, O_RDWR);
        file = &file_of(fd);
        file->payoff.probes = 9;  // not to see how fast storage is
    }
    ~Storage() {
        read_hook = nullptr;
        write_hook = nullptr;
        state.below = {.pread = read_below, .pwrite = write_below};
        CHECK(close_buffered(fd) == 0);
    }
    static void reads_by(std::function<ssize_t(void*, std::size_t, off64_t)> hook) {
        read_hook = std::move(hook);
        state.below.pread = [](int, void* to, std::size_t bytes, off64_t at) { return read_hook(to, bytes, at); };
    }
    static void writes_by(std::function<ssize_t(const void*, std::size_t, off64_t)> hook) {
        write_hook = std::move(hook);
        state.below.pwrite = [](int, const void* from, std::size_t bytes, off64_t at) {
            return write_hook(from, bytes, at);
        };
    }
    ssize_t read(std::size_t bytes, off64_t at) { return read_at(fd, data.data(), bytes, at); }
    ssize_t write(std::size_t bytes, off64_t at) { return write_at(fd, data.data(), bytes, at); }
};

ssize_t refused(int error) {
    errno = error;
    return -1;
}

}  // namespace

TEST_CASE("a read that goes straight is asked again when it is interrupted, and gives what came before an error") {
    Storage one;
    int calls = 0;
    one.reads_by([&](void* to, std::size_t bytes, off64_t at) {
        ++calls;
        return calls == 1 ? refused(EINTR) : calls == 2 ? pread64(one.fd, to, 30, at) : pread64(one.fd, to, bytes, at);
    });
    CHECK(one.read(100, 40'000) == 100);
    CHECK(calls == 3);
    CHECK(one.data.substr(0, 100) == std::string(100, '-'));
    CHECK(one.file->statistics.read.below == 1);
    CHECK(one.file->statistics.read.below_bytes == 100);
    CHECK(one.file->statistics.read.hits == 0);
    one.reads_by([](void*, std::size_t, off64_t) { return refused(EIO); });
    CHECK(one.read(100, 20'000) == -EIO);
    CHECK(one.file->statistics.read.below == 2);
    calls = 0;
    one.reads_by(
        [&](void* to, std::size_t, off64_t at) { return calls++ == 0 ? pread64(one.fd, to, 60, at) : refused(EIO); });
    CHECK(one.read(100, 30'000) == 60);
    CHECK(one.file->statistics.read.below_bytes == 160);
    CHECK(one.file->turns.in_flight == 0);
    // What storage does not have although the file is so long: zeros.
    one.reads_by([](void*, std::size_t, off64_t) { return 0; });
    one.data.assign(one.data.size(), 'x');
    CHECK(one.read(100, 10'000) == 100);
    CHECK(one.data.substr(0, 101) == std::string(100, '\0') + "x");
}

TEST_CASE("an error in the middle of a read gives what was read before it, at its beginning the error") {
    Storage one("*:size=4k:count=8:prefetch=0,%process:threads=0:age=600");
    one.file->rule->stands_aside = false;
    one.reads_by([&](void* to, std::size_t bytes, off64_t at) {
        return at < 8192 ? pread64(one.fd, to, bytes, at) : refused(EIO);
    });
    CHECK(one.read(100, 8192) == -EIO);
    CHECK(one.read(5000, 4096) == 4096);
    CHECK(one.read(4200, 8100) == 92);
    char head[50], tail[50], rest[50];
    const buffer::Vector parts[] = {{head, 50}, {tail, 50}, {rest, 50}};
    CHECK(buffer::read(one.fd, parts, 3, 8192 - 60).value == 60);
    CHECK(buffer::read(one.fd, parts, 3, 8192).value == -EIO);
}

TEST_CASE("a write that goes straight is asked again when it is interrupted, and one that moves less says how much") {
    Storage one;
    int calls = 0;
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) {
        return calls++ == 0 ? refused(EINTR) : pwrite64(one.fd, from, bytes, at);
    });
    CHECK(one.write(100, 40'000) == 100);
    CHECK(calls == 2);
    CHECK(one.file->statistics.write.below == 1);
    CHECK(one.file->statistics.write.below_bytes == 100);
    one.writes_by(
        [&](const void* from, std::size_t bytes, off64_t at) { return pwrite64(one.fd, from, bytes / 2, at); });
    CHECK(one.write(100, 20'000) == 50);
    CHECK(one.file->statistics.write.below_bytes == 150);
    one.writes_by([](const void*, std::size_t, off64_t) { return 0; });
    CHECK(one.write(100, 10'000) == 0);
    one.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
    CHECK(one.write(100, 50'000) == -ENOSPC);
    CHECK(one.file->size == 1 << 16);
    CHECK(one.file->turns.in_flight == 0);
    CHECK_FALSE(one.file->turns.writer_turn);
    CHECK(one.file->errors.count == 0);  // the call itself has told it
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) { return pwrite64(one.fd, from, bytes, at); });
    CHECK(one.write(100, 100'000) == 100);  // behind the end
    CHECK(one.file->size == 100'100);
}

TEST_CASE("an error in the middle of a write gives what was written before it") {
    Storage one;
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) {
        return at < 20'000 ? pwrite64(one.fd, from, bytes, at) : refused(ENOSPC);
    });
    std::string first(50, 'a'), second(50, 'b');
    buffer::Vector parts[] = {{first.data(), 50}, {second.data(), 50}};
    CHECK(buffer::write(one.fd, parts, 2, 19'960).value == 50);
    CHECK(contents(one.path).substr(19'960, 50) == first);
    CHECK(buffer::write(one.fd, parts, 2, 30'000).value == -ENOSPC);
    int calls = 0;
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) {
        ++calls;
        return pwrite64(one.fd, from, std::min<std::size_t>(bytes, 20), at);
    });
    CHECK(buffer::write(one.fd, parts, 2, 40'000).value == 20);  // and does not go on with the next part
    CHECK(calls == 1);
}

TEST_CASE("what was written before and is refused keeps what goes straight from overtaking it") {
    Storage one;
    REQUIRE(one.write(100, 1 << 16) == 100);  // at the end: stays here
    REQUIRE(buffer::holds_dirty(one.fd));
    one.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
    CHECK(one.write(100, 40'000) == -ENOSPC);
    CHECK(one.file->errors.count == 1);  // reported by this call
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) { return pwrite64(one.fd, from, bytes, at); });
    CHECK(one.write(100, 40'000) == 100);
    CHECK(contents(one.path).size() == (1 << 16) + 100);
    REQUIRE(one.write(100, (1 << 16) + 100) == 100);
    one.writes_by([](const void*, std::size_t, off64_t) { return refused(EDQUOT); });
    one.file->lock.lock();
    CHECK(buffer::flush_file(*one.file) == -EDQUOT);
    one.file->lock.unlock();
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) { return pwrite64(one.fd, from, bytes, at); });
    one.file->lock.lock();
    CHECK(buffer::flush_file(*one.file) == 0);
    one.file->lock.unlock();
    int error = 0;
    CHECK(buffer::take_error(*one.file, *buffer::table[one.fd].load(), error));
    CHECK(error == EDQUOT);
    CHECK_FALSE(buffer::take_error(*one.file, *buffer::table[one.fd].load(), error));
}

TEST_CASE("pages that somebody read while a write went past them are forgotten, but for what is newer than it") {
    Storage one;
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) {
        // Another thread meanwhile: pages 4 to 7 of what was there before; 20 bytes of page 5 are written after us.
        one.file->lock.lock();
        for (std::int64_t index = 4; index < 8; ++index) {
            bool again = false;
            Page* page = buffer::new_page(*one.file, index, again);
            REQUIRE(page != nullptr);
            CHECK(buffer::load(*one.file, *page, 0, 4096, false) == 0);
        }
        Page* dirty = buffer::find_page(*one.file, 5);
        dirty->dirty.add(100, 120);
        buffer::note_dirty(*one.file, *dirty);
        one.file->lock.unlock();
        return pwrite64(one.fd, from, bytes, at);
    });
    one.file->payoff.best_rate = 1U << 30U;  // large calls go straight
    REQUIRE(one.write(3 * 4096 - 10, 4 * 4096) == 3 * 4096 - 10);
    CHECK(buffer::find_page(*one.file, 4) == nullptr);
    CHECK(buffer::find_page(*one.file, 6) == nullptr);
    CHECK(buffer::find_page(*one.file, 7) != nullptr);
    const Page* newer = buffer::find_page(*one.file, 5);
    REQUIRE(newer != nullptr);
    CHECK(newer->valid.count() == 1);
    CHECK(newer->valid.covers(100, 120));
    CHECK(newer->valid.bytes() == 20);
}

TEST_CASE("a page that is dirty all over again after a refusal is full with the next byte") {
    Storage one("*:size=4k:count=4,%process:threads=0:age=600");
    one.file->rule->stands_aside = false;
    REQUIRE(one.write(4000, 0) == 4000);
    REQUIRE(one.write(96, 4000) == 96);
    Page* page = buffer::find_page(*one.file, 0);
    REQUIRE(page != nullptr);
    CHECK(page->full);
    one.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
    const std::uint64_t before = system::now_ns();
    bool ignored = false;
    CHECK(buffer::flush(one.fd, ignored) == ENOSPC);
    CHECK_FALSE(page->full);
    CHECK(one.file->errors.retry_after_ns >= before + 1'000'000'000);
    CHECK(one.file->errors.retry_after_ns <= system::now_ns() + 1'000'000'000);
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) { return pwrite64(one.fd, from, bytes, at); });
    REQUIRE(one.write(10, 100) == 10);
    CHECK(page->full);
    CHECK(buffer::flush(one.fd, ignored) == 0);
    REQUIRE(one.write(10, 100) == 10);
    CHECK_FALSE(page->full);
}

TEST_CASE("what storage refuses at a close is lost with the last writer, and stays while there is another") {
    for (const bool another : {true, false}) {
        CAPTURE(another);
        Storage one;
        const int other = open_buffered(one.path, another ? O_WRONLY : O_RDONLY);
        const int closing = open_buffered(one.path, O_RDWR);
        REQUIRE(close_buffered(one.fd) == 0);
        one.fd = other;
        REQUIRE(write_at(closing, one.data.data(), 100, 1 << 16) == 100);
        one.writes_by([](const void*, std::size_t, off64_t) { return refused(ENOSPC); });
        CHECK(close_buffered(closing) == ENOSPC);
        CHECK(buffer::holds_dirty(other) == another);
        CHECK(one.file->size == (another ? (1 << 16) + 100 : 1 << 16));
        CHECK(one.file->held.count == (another ? 1 : 0));
        one.writes_by([&](const void* from, std::size_t bytes, off64_t at) {
            return pwrite64(another ? other : -1, from, bytes, at);
        });
        bool ignored = false;
        CHECK(buffer::flush(other, ignored) == ENOSPC);  // each is told once
        CHECK(contents(one.path).size() == (another ? (1 << 16) + 100 : 1 << 16));
        CHECK_FALSE(buffer::holds_dirty(other));
    }
}

TEST_CASE("space_below_4_GiB_counts_as_low") {
    struct statfs about {};
    about.f_bsize = 4096;
    about.f_blocks = 1U << 30U;
    about.f_bavail = (1U << 20U) - 1;
    CHECK(buffer::space_is_low(about));
    about.f_bavail = 1U << 20U;
    CHECK_FALSE(buffer::space_is_low(about));
    about.f_blocks = about.f_bavail = 0;
    CHECK_FALSE(buffer::space_is_low(about));  // a file system that does not tell
}

TEST_CASE("where every page holds what storage refuses, what is written next goes straight, and is told of it") {
    Storage one("*:size=4k:count=2:prefetch=0,%process:threads=0:age=600");
    one.file->rule->stands_aside = false;
    REQUIRE(one.write(10, 0) == 10);
    REQUIRE(one.write(10, 4096) == 10);
    int calls = 0;
    one.writes_by([&](const void*, std::size_t, off64_t) {
        ++calls;
        return refused(ENOSPC);
    });
    CHECK(one.write(10, 8192) == -ENOSPC);
    CHECK(calls == 2);  // to make room, and then what came before
    CHECK(one.file->dirty.pages == 2);
    CHECK(one.read(100, 12'288) == 100);  // without a page
    CHECK(one.file->held.count == 2);
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) { return pwrite64(one.fd, from, bytes, at); });
    bool ignored = false;
    CHECK(buffer::flush(one.fd, ignored) == ENOSPC);
    CHECK(buffer::flush(one.fd, ignored) == 0);
    CHECK(contents(one.path).substr(4096, 10) == std::string(10, 'x'));
}

TEST_CASE("a page in too many pieces is flushed to make room, and an error of that ends the call") {
    Storage one("*:size=4k:count=2:prefetch=0,%process:threads=0:age=600");
    one.file->rule->stands_aside = false;
    for (std::uint32_t i = 0; i < buffer::RangeSet::capacity; ++i) {
        REQUIRE(one.write(1, i * 10) == 1);
    }
    CHECK(one.file->statistics.write.below == 0);
    one.writes_by([](const void*, std::size_t, off64_t) { return refused(EDQUOT); });
    CHECK(one.write(1, 3000) == -EDQUOT);
    std::string first(10, 'a'), second(10, 'b');
    const buffer::Vector parts[] = {{first.data(), 10}, {second.data(), 10}};
    CHECK(buffer::write(one.fd, parts, 2, 3000).value == -EDQUOT);
    one.writes_by([&](const void* from, std::size_t bytes, off64_t at) { return pwrite64(one.fd, from, bytes, at); });
    CHECK(one.write(1, 3000) == 1);
    CHECK(one.file->statistics.write.below >= buffer::RangeSet::capacity);
    CHECK(one.file->dirty.pages == 1);  // of the byte that came now
    CHECK(one.file->dirty.first->dirty.bytes() == 1);
}

TEST_CASE("behind the end of a file there is nothing to load") {
    Storage one;
    one.file->lock.lock();
    bool again = false;
    Page* page = buffer::new_page(*one.file, 16, again);
    REQUIRE(page != nullptr);
    CHECK(buffer::load(*one.file, *page, 0, 4096, true) == 0);
    CHECK(page->valid.empty());
    CHECK(one.file->statistics.read.below == 0);
    CHECK(one.file->statistics.wait_ns == 0);
    buffer::drop_page(*one.file, *page);
    one.file->lock.unlock();
}

TEST_CASE("a page whose clean parts are too many pieces forgets these when more is written to it") {
    Storage one;
    one.file->lock.lock();
    bool again = false;
    Page* page = buffer::new_page(*one.file, 3, again);
    REQUIRE(page != nullptr);
    for (std::uint32_t i = 0; i < buffer::RangeSet::capacity; ++i) {
        page->valid.add(i * 20, i * 20 + 5);
    }
    one.file->lock.unlock();
    CHECK(one.write(10, 3 * 4096 + 2000) == 10);
    CHECK(page->valid.bytes() == 10);
    CHECK(page->dirty.bytes() == 10);
    CHECK(one.file->statistics.write.below == 0);
}

TEST_CASE("error_that_no_call_reported_is_printed_at_the_end") {
    Folder folder;
    const auto printed = [&](bool fails) {
        const std::string output = folder.path + (fails ? "/bad" : "/good");
        const bool done = in_child([&] {
            const int to = open(output.c_str(), O_WRONLY | O_CREAT, 0644);
            dup2(to, 2);
            Storage one;
            one.file->rule->stands_aside = false;
            Storage::writes_by([&](const void*, std::size_t bytes, off64_t) -> ssize_t {
                errno = EIO;
                return fails ? -1 : static_cast<ssize_t>(bytes);
            });
            const bool accepted = one.write(100, 20'000) == 100;
            buffer::finish();
            buffer::finish();
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
