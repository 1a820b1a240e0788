// SPDX-License-Identifier: Apache-2.0
// Tests which shared uses of a file end its buffering: children, other processes, MPI ranks.
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
using buffer::Mode;
using buffer::OpenedByMpi;

namespace {

/// Opened as ranks of MPI do it.
int open_shared(const std::string& path, int flags, const OpenedByMpi& mpi) {
    const int fd = open(path.c_str(), flags, 0644);
    buffer::adopt_descriptor({.fd = fd, .flags = flags, .path = path.c_str(), .mpi = &mpi});
    REQUIRE(buffer::is_watched_descriptor(fd));
    return fd;
}

}  // namespace

TEST_CASE("inherited_file_ends_buffering_and_close_on_exec_does_not") {
    {
        Held one(quiet, O_RDWR | O_CREAT | O_CLOEXEC);
        buffer::prepare_child_process(buffer::ChildKind::Program);
        CHECK(mode_of(one.fd) == Mode::Active);
        CHECK(contents(one.path) == one.text);
    }
    {
        Held one(quiet);
        buffer::prepare_child_process(buffer::ChildKind::Program);
        CHECK(why(one.fd) == "a child process inherited it");
        CHECK(contents(one.path) == one.text);
    }
    {
        Held one(quiet, O_RDWR | O_CREAT | O_CLOEXEC);
        buffer::prepare_child_process(buffer::ChildKind::Copy);
        CHECK(why(one.fd) == "a child process shares it");
        CHECK(contents(one.path) == one.text);
    }
    {
        Held one(quiet, O_RDWR | O_CREAT | O_CLOEXEC);
        buffer::prepare_child_process(buffer::ChildKind::Vanishing);
        CHECK(mode_of(one.fd) == Mode::Suspended);
        CHECK(contents(one.path) == one.text);
        // If it does not succeed we are back after 64 calls; a thread that slept before counts them by the score, and
        // its first sixteen may have begun with calls on another file.
        char bytes_read[10];
        for (int i = 0; i < 64; ++i) {
            REQUIRE(read_at(one.fd, bytes_read, 10, 0) == 10);
            REQUIRE((i >= 48 || mode_of(one.fd) == Mode::Suspended));
        }
        CHECK(mode_of(one.fd) == Mode::Active);
    }
}

TEST_CASE("append_by_another_process_is_visible_at_end") {
    Held one(quiet);
    buffer::flush_to_kernel(one.fd);
    const int other = open(one.path.c_str(), O_WRONLY | O_APPEND);
    REQUIRE(write(other, "more", 4) == 4);
    close(other);
    std::string bytes_read(10, '.');
    CHECK(read_at(one.fd, bytes_read.data(), 10, 500) == 4);
    CHECK(bytes_read.substr(0, 4) == "more");
    CHECK(buffer::seek(one.fd, 0, SEEK_END).value == 504);
    CHECK(read_at(one.fd, bytes_read.data(), 10, 504) == 0);
}

TEST_CASE("mpi_file_is_buffered_alone_read_only_or_disjoint") {
    settings::Rule plain;
    settings::Rule disjoint;
    disjoint.mpi_disjoint = true;
    int handle = 0;
    const auto fits = [&](int ranks, int flags, const settings::Rule& rule) {
        return buffer::describe_mpi_objection({ranks, &handle}, flags, rule) == nullptr;
    };
    CHECK_FALSE(fits(0, O_RDONLY, disjoint));
    CHECK(buffer::describe_mpi_objection({1, nullptr}, O_RDONLY, disjoint) != nullptr);
    CHECK(fits(1, O_RDWR, plain));
    CHECK(fits(2, O_RDONLY, plain));
    CHECK_FALSE(fits(2, O_WRONLY, plain));
    CHECK_FALSE(fits(2, O_RDWR, plain));
    CHECK(fits(2, O_RDWR, disjoint));
}

TEST_CASE("rank_files_belong_to_their_handle_until_released") {
    const Folder folder;
    use("*:size=4k:count=4:mpiio=disjoint,%process:age=600");
    int handle = 0;
    int stranger = 0;
    const std::string path = folder.path + "/shared";
    const int fd = open_shared(path, O_RDWR | O_CREAT, {4, &handle});
    CHECK(file_of(fd).is_shared);
    CHECK(buffer::is_shared(&handle));
    CHECK_FALSE(buffer::is_shared(&stranger));
    std::string text(500, 'x');
    REQUIRE(write_at(fd, text.data(), 500, 0) == 500);
    CHECK(file_of(fd).pages.count == 1);
    buffer::sync_shared(&stranger);
    CHECK(contents(path) == "");
    buffer::sync_shared(&handle);  // what others wrote must be seen from now on
    CHECK(contents(path) == text);
    CHECK(file_of(fd).pages.count == 0);
    REQUIRE(truncate(path.c_str(), 100) == 0);
    CHECK(buffer::flush_descriptor(fd) == 0);
    CHECK(file_of(fd).size == 100);
    buffer::release_shared(&stranger, "not this one");
    CHECK(mode_of(fd) == Mode::Active);
    buffer::release_shared(&handle, "a view that overlaps");
    CHECK(why(fd) == "a view that overlaps");
    CHECK_FALSE(buffer::is_shared(&handle));
    CHECK(close_buffered(fd) == 0);

    const int again = open_shared(path, O_RDWR, {4, &handle});
    const int plain = open_buffered(path, O_RDONLY);
    CHECK(why(again) == "opened by MPI-IO, and once more");
    CHECK(close_buffered(plain) == 0);
    CHECK(close_buffered(again) == 0);
    const int first = open_shared(path, O_RDWR, {4, &handle});
    const int two = open_shared(path, O_RDWR, {4, &handle});
    CHECK(mode_of(first) == Mode::Active);  // the same handle: once more by the same library
    const int three = open_shared(path, O_RDWR, {4, &stranger});
    CHECK(why(first) == "opened by MPI-IO, and once more");
    for (const int open : {first, two, three}) {
        CHECK(close_buffered(open) == 0);
    }
    const int reader = open_shared(path, O_RDONLY, {4, &handle});
    CHECK_FALSE(file_of(reader).is_shared);  // who only reads needs no promise
    CHECK(mode_of(reader) == Mode::Active);
    CHECK(close_buffered(reader) == 0);
}
