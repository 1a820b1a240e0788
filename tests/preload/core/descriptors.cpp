// SPDX-License-Identifier: Apache-2.0
// Tests descriptors of the library, what duplicates share, and what remains after the last close.
#include "dirty_file.hpp"

#include "cache/pages.hpp"
#include "files/lifecycle.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

using namespace under_test;
using buffer::File;
using buffer::Mode;
using buffer::state;

TEST_CASE("open_flags_that_prevent_buffering_release_the_file") {
    for (const int flag : {O_SYNC, O_DSYNC, O_DIRECT, O_APPEND}) {
        CAPTURE(flag);
        Held one(quiet);
        const int other = open(one.path.c_str(), O_RDWR | flag);
        if (other < 0) {
            continue;  // not every file system has O_DIRECT
        }
        buffer::adopt_descriptor({.fd = other, .flags = O_RDWR | flag, .path = one.path.c_str()});
        CHECK(mode_of(one.fd) == Mode::Released);
        CHECK(why(one.fd) ==
              (flag == O_APPEND ? "open for writing with O_APPEND and without" : "opened with O_DIRECT or O_SYNC"));
        CHECK(contents(one.path) == one.text);
        CHECK(close_buffered(other) == 0);
        CHECK(mode_of(one.fd) == Mode::Released);
    }
    Held one(quiet);
    const int reader = open_buffered(one.path, O_RDONLY | O_APPEND);  // which means nothing where nothing is written
    CHECK(mode_of(one.fd) == Mode::Active);
    CHECK(close_buffered(reader) == 0);
}

TEST_CASE("pipes_and_unnamed_files_are_not_buffered") {
    const Folder folder;
    use(quiet);
    const std::string path = folder.path + "/data";
    close(open(path.c_str(), O_CREAT | O_RDWR, 0644));
    const int name = open(path.c_str(), O_PATH);
    buffer::adopt_descriptor({.fd = name, .flags = O_PATH, .path = path.c_str()});
    CHECK_FALSE(buffer::is_watched_descriptor(name));
    close(name);
    const int fd = open(path.c_str(), O_RDWR);
    buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR | O_TMPFILE, .path = path.c_str()});
    CHECK_FALSE(buffer::is_watched_descriptor(fd));
    close(fd);
    const int fd_of_folder = open(folder.path.c_str(), O_RDONLY | O_DIRECTORY);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    buffer::adopt_descriptor({.fd = ends[0], .flags = O_RDONLY, .path = path.c_str()});
    CHECK_FALSE(buffer::is_watched_descriptor(ends[0]));
    const int made_up = open("/proc/self/status", O_RDONLY);
    struct statfs about {};
    CHECK_FALSE(buffer::does_file_system_allow_buffering(made_up, about));
    CHECK_FALSE(buffer::is_local_file_system(about));
    CHECK(buffer::does_file_system_allow_buffering(fd_of_folder, about));
    CHECK(buffer::is_local_file_system(about));
    about.f_type = 0x6969;  // NFS
    CHECK_FALSE(buffer::is_local_file_system(about));
    close(made_up);
    close(fd_of_folder);
    close(ends[0]);
    close(ends[1]);
    CHECK_FALSE(buffer::has_registered_descriptors());
}

TEST_CASE("file_without_rule_is_not_buffered_but_noted") {
    const Folder folder;
    use("*.dat:size=4k");
    state.has_uncovered_files = false;
    const std::string path = folder.path + "/data.log";
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR, .path = path.c_str()});
    CHECK_FALSE(buffer::is_watched_descriptor(fd));
    CHECK(state.has_uncovered_files.load());
    state.has_uncovered_files = false;
    close(fd);
}

TEST_CASE("duplicates_share_offset_and_last_close_flushes") {
    Held one(quiet);
    const int copy = dup(one.fd);
    buffer::register_duplicate(one.fd, copy);
    REQUIRE(buffer::is_watched_descriptor(copy));
    CHECK(buffer::table[copy].load() == buffer::table[one.fd].load());
    CHECK(buffer::table[copy].load()->references == 2);
    const buffer::CallResult sought = buffer::seek(one.fd, 123, SEEK_SET);
    CHECK(sought.is_done);
    CHECK(sought.value == 123);
    CHECK(buffer::seek(copy, 0, SEEK_CUR).value == 123);
    CHECK(buffer::seek(copy, -3, SEEK_END).value == 497);
    CHECK(buffer::seek(copy, -498, SEEK_CUR).value == -EINVAL);
    CHECK(buffer::seek(copy, 0, SEEK_CUR).value == 497);
    CHECK(file_of(copy).statistics.seeks == 5);
    const int first = one.fd;
    CHECK(close_buffered(first) == 0);
    CHECK_FALSE(buffer::is_watched_descriptor(first));
    CHECK(buffer::table[copy].load()->fd == copy);
    CHECK(lseek(copy, 0, SEEK_CUR) == 497);  // the kernel's offset counts for whoever else has it
    CHECK(mode_of(copy) == Mode::Active);
    REQUIRE(write_at(copy, one.text.data(), 100, 500) == 100);
    CHECK(close_buffered(copy) == 0);
    CHECK(contents(one.path).size() == 600);
    one.fd = open_buffered(one.path, O_RDWR);
}

TEST_CASE("duplicate_to_standard_stream_ends_buffering") {
    Held one(quiet);
    buffer::register_duplicate(one.fd, 1);
    CHECK(why(one.fd) == "duplicated to a standard stream");
    CHECK(contents(one.path) == one.text);
    CHECK(buffer::detach_descriptor(1) == 0);
}

TEST_CASE("reused_descriptor_number_loses_data_and_reports_error") {
    Held one(quiet);
    const int other = open_buffered(one.path, O_RDWR);
    REQUIRE(write_at(other, one.text.data(), 10, 1000) == 10);
    buffer::adopt_descriptor({.fd = other, .flags = O_RDWR, .path = one.path.c_str()});  // the same number once more
    CHECK(mode_of(one.fd) == Mode::Released);
    CHECK(why(one.fd) == "a descriptor of it was closed where it could not be seen");
    CHECK(contents(one.path) == "");
    CHECK(buffer::detach_descriptor(one.fd) == EIO);
    close(one.fd);
    CHECK(close_buffered(other) == 0);
    one.fd = open_buffered(one.path, O_RDWR);
}

TEST_CASE("last_close_returns_all_memory_within_limits") {
    const std::uint64_t before = state.used_memory_bytes.load();
    {
        Held one(quiet);
        for (int page = 1; page < 20; ++page) {
            REQUIRE(write_at(one.fd, one.text.data(), 500, page * 4096) == 500);
            CHECK(file_of(one.fd).pages.count <= 4);
        }
        CHECK(file_of(one.fd).pages.count == 4);
        CHECK(state.used_memory_bytes.load() == before + 4 * 4096);
        char bytes_read[10];
        REQUIRE(read_at(one.fd, bytes_read, 10, 19 * 4096) == 10);
        CHECK(bytes_read[9] == 'x');
        REQUIRE(read_at(one.fd, bytes_read, 10, 4086) == 10);  // between what was written: a hole
        CHECK(bytes_read[9] == '\0');
    }
    CHECK(state.used_memory_bytes.load() == before);
    CHECK_FALSE(buffer::has_registered_descriptors());
}

TEST_CASE("process_memory_limit_sends_calls_to_storage") {
    use("*:size=64k:count=4,%process:maxmem=128k");
    state.max_memory_bytes = 128 << 10;
    const Folder folder;
    const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
    std::string text(1000, 'x');
    for (int page = 0; page < 4; ++page) {
        REQUIRE(write_at(fd, text.data(), 1000, page * 65536) == 1000);
        CHECK(state.used_memory_bytes.load() <= 128 << 10);
    }
    CHECK(file_of(fd).pages.count == 2);
    CHECK(close_buffered(fd) == 0);
    CHECK((contents(folder.path + "/data").substr(65536, 1000) == text));
}

TEST_CASE("private_descriptors_are_tracked_up_to_4096") {
    CHECK_FALSE(buffer::is_own_descriptor(4000));
    buffer::mark_own_descriptor(4000);
    CHECK(buffer::is_own_descriptor(4000));
    CHECK_FALSE(buffer::is_own_descriptor(4001));
    CHECK_FALSE(buffer::is_own_descriptor(3999));
    buffer::unmark_own_descriptor(4000);
    CHECK_FALSE(buffer::is_own_descriptor(4000));
    buffer::mark_own_descriptor(-1);
    CHECK_FALSE(buffer::is_own_descriptor(-1));
    buffer::mark_own_descriptor(4096);
    CHECK_FALSE(buffer::is_own_descriptor(4096));
    buffer::mark_own_descriptor(4095);
    CHECK(buffer::is_own_descriptor(4095));
    buffer::unmark_own_descriptor(4095);
}

TEST_CASE("closed_file_has_a_final_mode_in_lists_that_contain_it") {
    const File* file = nullptr;
    {
        const Held one(quiet);
        file = &file_of(one.fd);
        CHECK(file->mode.load() == Mode::Active);
    }
    CHECK(file->mode.load() == Mode::Unused);
}

TEST_CASE("lock_shows_data_and_size_of_other_process") {
    Held one(quiet);
    std::string text(500, '.');
    REQUIRE(read_at(one.fd, text.data(), 500, 0) == 500);
    buffer::flush_to_kernel(one.fd);  // before the lock
    REQUIRE(pwrite(one.fd, "elsewhere", 9, 700) == 9);
    REQUIRE(pwrite(one.fd, "changed", 7, 10) == 7);
    buffer::read_again_after_lock(one.fd);
    CHECK(mode_of(one.fd) == Mode::Active);
    CHECK(file_of(one.fd).pages.count == 0);
    CHECK(file_of(one.fd).size == 709);
    REQUIRE(read_at(one.fd, text.data(), 7, 10) == 7);
    CHECK(text.substr(0, 7) == "changed");
    buffer::read_again_after_lock(999);
}
