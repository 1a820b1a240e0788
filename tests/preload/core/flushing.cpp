// SPDX-License-Identifier: Apache-2.0
// Tests that delayed data is flushed before another process or call needs it.
#include "dirty_file.hpp"

#include "cache/pages.hpp"
#include "files/lifecycle.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

using namespace under_test;
using buffer::Mode;
using buffer::state;

namespace {

/// A thread that is canceled during a call must not leave the file suspended.
bool can_be_canceled() {
    int state_now = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state_now);
    pthread_setcancelstate(state_now, nullptr);
    return state_now == PTHREAD_CANCEL_ENABLE;
}

}  // namespace

TEST_CASE("release_by_any_key_hands_data_over_first") {
    struct stat got {};
    {
        Held one(quiet);
        buffer::release_file_of_descriptor(one.fd, "by descriptor");
        CHECK(mode_of(one.fd) == Mode::Released);
        CHECK(why(one.fd) == "by descriptor");
        CHECK(contents(one.path) == one.text);
        CHECK(file_of(one.fd).pages.count == 0);
    }
    {
        Held one(quiet);
        REQUIRE(fstat(one.fd, &got) == 0);
        buffer::release_file_of_inode(got.st_dev, got.st_ino + 1, "another");
        CHECK(mode_of(one.fd) == Mode::Active);
        buffer::release_file_of_inode(got.st_dev, got.st_ino, "by inode");
        CHECK(why(one.fd) == "by inode");
        CHECK(contents(one.path) == one.text);
    }
    {
        Held one(quiet);
        buffer::disable_buffering("for all");
        CHECK(why(one.fd) == "for all");
        CHECK(contents(one.path) == one.text);
        const std::string path = one.folder.path + "/next";
        const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0644);
        buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR, .path = path.c_str()});
        CHECK_FALSE(buffer::is_watched_descriptor(fd));
        close(fd);
        state.is_disabled = false;
    }
}

TEST_CASE("flush_by_any_key_keeps_file_buffered") {
    struct stat got {};
    const auto by = [&](auto flush) {
        Held one(quiet);
        REQUIRE(fstat(one.fd, &got) == 0);
        CHECK(buffer::has_dirty_pages(one.fd));
        CHECK(buffer::is_registered_inode(got.st_dev, got.st_ino));
        flush(one.fd);
        CHECK(contents(one.path) == one.text);
        CHECK_FALSE(buffer::has_dirty_pages(one.fd));
        CHECK(buffer::is_registered_inode(got.st_dev, got.st_ino));
        CHECK(mode_of(one.fd) == Mode::Active);
        CHECK(file_of(one.fd).pages.count == 1);
    };
    by([](int fd) { buffer::flush_to_kernel(fd); });
    by([&](int) { buffer::flush_inode(got.st_dev, got.st_ino); });
    by([](int) { buffer::flush_all(); });
    by([](int fd) {
        CHECK(buffer::flush_descriptor(fd) == 0);
        CHECK(file_of(fd).statistics.syncs == 1);
    });
    CHECK_FALSE(buffer::has_dirty_pages(999));
    CHECK_FALSE(buffer::is_registered_inode(got.st_dev, got.st_ino));
    CHECK(buffer::flush_descriptor(999) == 0);
}

TEST_CASE("exclusive_scope_shows_program_state_and_resumes") {
    Held one(quiet);
    {
        const buffer::PassThrough around(one.fd);
        CHECK(mode_of(one.fd) == Mode::Suspended);
        CHECK_FALSE(can_be_canceled());
        CHECK(contents(one.path) == one.text);
        { const buffer::PassThrough inner(one.fd); }
        CHECK(mode_of(one.fd) == Mode::Suspended);  // the outer call still needs it so
        REQUIRE(ftruncate(one.fd, 50) == 0);
        REQUIRE(lseek(one.fd, 7, SEEK_SET) == 7);
    }
    CHECK(can_be_canceled());
    CHECK(mode_of(one.fd) == Mode::Active);
    CHECK(file_of(one.fd).size == 50);
    CHECK(buffer::seek(one.fd, 0, SEEK_CUR).value == 7);
    CHECK(file_of(one.fd).statistics.interruptions == 1);
    struct stat got {};
    REQUIRE(fstat(one.fd, &got) == 0);
    {
        const buffer::PassThrough by_inode(got.st_dev, got.st_ino);
        CHECK(mode_of(one.fd) == Mode::Suspended);
    }
    CHECK(mode_of(one.fd) == Mode::Active);
    const buffer::PassThrough nobody(999);
}

TEST_CASE("close_writes_without_blocking_other_opens_and_closes") {
    Held one(quiet);
    static std::atomic<bool> others_may;
    others_may = false;
    const auto before = state.storage.pwrite;
    state.storage.pwrite = [](int fd, const void* data, std::size_t bytes, off64_t offset) {
        if (state.files_lock.try_lock(1'000'000'000)) {
            others_may = true;
            state.files_lock.unlock();
        }
        return pwrite64(fd, data, bytes, offset);
    };
    const int first = one.fd;
    CHECK(close_buffered(first) == 0);
    state.storage.pwrite = before;
    CHECK(others_may);
    CHECK(contents(one.path) == one.text);
    one.fd = open_buffered(one.path, O_RDWR);
}
