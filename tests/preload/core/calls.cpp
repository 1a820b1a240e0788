// SPDX-License-Identifier: Apache-2.0
// Which calls are done here and which are left to the kernel, at the borders; what is counted of each; when a sleeping
// file wakes.
#include "files/calls.hpp"

#include "dirty_file.hpp"

#include "cache/readahead.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

using namespace under_test;
using buffer::CallResult;
using buffer::File;
using buffer::IoPart;
using buffer::Mode;
using buffer::state;

namespace {

constexpr std::int64_t farthest = 1LL << 43;

/// Returns whether the buffer executed the call. If not, ends the pass-through call without transferred bytes.
bool was_served_by_library(const CallResult& answer, int fd) {
    if (!answer.is_done) {
        CHECK(file_of(fd).pass_through_calls.load() == 1);
        CHECK(answer.pass_through_file == &file_of(fd));
        buffer::make_real_call(answer, [] { return ssize_t{0}; });
        CHECK(file_of(fd).calls_until_retry.load() == 1);
        file_of(fd).lock.lock();
        buffer::resume_buffering(file_of(fd));
        file_of(fd).lock.unlock();
    }
    CHECK(file_of(fd).pass_through_calls.load() == 0);
    CHECK(mode_of(fd) == Mode::Active);
    return answer.is_done;
}

bool library_reads(int fd, char* data, std::size_t bytes, std::int64_t offset) {
    const IoPart part{data, bytes};
    return was_served_by_library(buffer::read(fd, &part, 1, offset), fd);
}

bool library_writes(int fd, char* data, std::size_t bytes, std::int64_t offset) {
    const IoPart part{data, bytes};
    return was_served_by_library(buffer::write(fd, &part, 1, offset), fd);
}

}  // namespace

TEST_CASE("unusual_calls_are_passed_to_kernel_and_file_resumes") {
    Held one(quiet);
    char data[100] = {};
    CHECK(library_reads(one.fd, data, 100, 500));
    CHECK_FALSE(library_reads(one.fd, data, 0, 500));
    CHECK(contents(one.path) == one.text);  // which sees what the program sees
    CHECK_FALSE(library_reads(one.fd, nullptr, 1, 0));
    CHECK_FALSE(library_reads(one.fd, reinterpret_cast<char*>(65535), 1, 0));
    CHECK_FALSE(library_reads(one.fd, reinterpret_cast<char*>(~std::uintptr_t{0}), 1, 0));
    // A call at the end of the file transfers nothing; only its offset and size count.
    CHECK(library_reads(one.fd, reinterpret_cast<char*>(65536), 1, 500));
    CHECK(library_reads(one.fd, reinterpret_cast<char*>(~std::uintptr_t{0} >> 1U), 1, 500));
    CHECK(library_reads(one.fd, data, (1U << 31U) - 4096, 500));
    CHECK_FALSE(library_reads(one.fd, data, (1U << 31U) - 4095, 500));
    CHECK(library_reads(one.fd, data, 10, farthest - 10));
    CHECK_FALSE(library_reads(one.fd, data, 10, farthest - 9));
    CHECK(file_of(one.fd).statistics.interruptions == 6);
    const IoPart two[] = {{data, 10}, {reinterpret_cast<char*>(8), 10}};
    CHECK_FALSE(was_served_by_library(buffer::read(one.fd, two, 2, 500), one.fd));
    const IoPart empty_elsewhere[] = {{data, 10}, {reinterpret_cast<char*>(8), 0}};
    CHECK(was_served_by_library(buffer::read(one.fd, empty_elsewhere, 2, 500), one.fd));
    CHECK(file_of(one.fd).statistics.read.calls == 6);
    CHECK(buffer::read(999, two, 2, 0).pass_through_file == nullptr);
    CHECK_FALSE(buffer::read(999, two, 2, 0).is_done);
    CHECK_FALSE(buffer::write(999, two, 2, 0).is_done);
    CHECK_FALSE(buffer::seek(999, 0, SEEK_SET).is_done);
}

TEST_CASE("calls_against_open_mode_are_refused_by_kernel") {
    Held one(quiet);
    char data[10] = {};
    const int reader = open_buffered(one.path, O_RDONLY);
    const int writer = open_buffered(one.path, O_WRONLY);
    CHECK(library_reads(reader, data, 10, 0));
    CHECK_FALSE(library_writes(reader, data, 10, 0));
    CHECK(library_writes(writer, data, 10, 0));
    CHECK_FALSE(library_reads(writer, data, 10, 0));
    CHECK(close_buffered(writer) == 0);
    CHECK(close_buffered(reader) == 0);
}

TEST_CASE("write_beyond_size_limit_is_passed_to_kernel") {
    Held one(quiet);
    state.file_size_limit = 1000;
    CHECK(library_writes(one.fd, one.text.data(), 100, 900));
    CHECK_FALSE(library_writes(one.fd, one.text.data(), 100, 901));
    state.file_size_limit = ~0ULL;
    CHECK(library_writes(one.fd, one.text.data(), 100, 901));
    CHECK(in_child([] {
        const rlimit some{12'345, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &some);
        buffer::read_file_size_limit();
        return state.file_size_limit.load() == 12'345;
    }));
}

TEST_CASE("seeks_to_8_tib_are_answered_and_hole_seeks_bypassed") {
    Held one(quiet);
    const auto sought = [&](std::int64_t offset, int whence) {
        const CallResult answer = buffer::seek(one.fd, offset, whence);
        const bool here = was_served_by_library(answer, one.fd);
        return here ? answer.value : -1'000'000;
    };
    CHECK(sought(farthest, SEEK_SET) == farthest);
    CHECK(sought(farthest + 1, SEEK_SET) == -1'000'000);
    CHECK(sought(7, SEEK_SET) == 7);
    CHECK(sought(0, SEEK_DATA) == -1'000'000);
    CHECK(sought(-1, SEEK_SET) == -EINVAL);
    CHECK(sought(0, SEEK_SET) == 0);
    CHECK(sought(-1, SEEK_CUR) == -EINVAL);
    CHECK(sought(INT64_MAX, SEEK_END) == -EINVAL);
    CHECK(sought(1, SEEK_END) == 501);
    CHECK(sought(2, SEEK_CUR) == 503);
    CHECK(file_of(one.fd).statistics.seeks == 8);
    CHECK(file_of(one.fd).statistics.interruptions == 2);
}

TEST_CASE("only_calls_at_current_offset_move_it") {
    Held one(quiet);
    char data[400];
    const IoPart part{data, 400};
    CHECK(buffer::read(one.fd, &part, 1, buffer::current_offset).value == 400);
    CHECK(buffer::seek(one.fd, 0, SEEK_CUR).value == 400);
    CHECK(buffer::read(one.fd, &part, 1, buffer::current_offset).value == 100);
    CHECK(buffer::seek(one.fd, 0, SEEK_CUR).value == 500);
    CHECK(buffer::read(one.fd, &part, 1, buffer::current_offset).value == 0);
    CHECK(buffer::read(one.fd, &part, 1, 10).value == 400);
    CHECK(buffer::seek(one.fd, 0, SEEK_CUR).value == 500);
    CHECK(buffer::write(one.fd, &part, 1, buffer::current_offset).value == 400);
    CHECK(buffer::seek(one.fd, 0, SEEK_CUR).value == 900);
    CHECK_FALSE(buffer::table[one.fd].load()->is_offset_busy);
    CHECK(file_of(one.fd).active_calls.running == 0);
    CHECK_FALSE(file_of(one.fd).active_calls.is_program_writing);
}

TEST_CASE("calls_are_counted_by_size_sequence_and_alignment") {
    use(quiet);
    const Folder folder;
    const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
    std::string data(20'000, 'x');
    const buffer::Statistics& counted = file_of(fd).statistics;
    const auto write = [&](std::size_t bytes, off64_t offset) {
        REQUIRE(write_at(fd, data.data(), bytes, offset) >= 0);
    };
    write(100, 0);  // the first follows nothing
    CHECK(counted.write.consecutive == 0);
    CHECK(counted.write.unaligned == 0);
    write(3996, 100);
    CHECK(counted.write.consecutive == 1);
    CHECK(counted.write.unaligned == 1);
    write(4096, 4096);
    CHECK(counted.write.consecutive == 2);
    CHECK(counted.write.unaligned == 1);
    write(1, 12'288);
    CHECK(counted.write.consecutive == 2);
    write(11'000, 12'289);
    CHECK(counted.write.calls == 5);
    CHECK(counted.write.bytes == 100 + 3996 + 4096 + 1 + 11'000);
    const std::uint64_t sizes[] = {2, 0, 2, 1, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 10; ++i) {
        CAPTURE(i);
        CHECK(counted.write.sizes[i] == sizes[i]);
    }
    REQUIRE(read_at(fd, data.data(), 1024, 5) == 1024);
    CHECK(counted.read.calls == 1);
    CHECK(counted.read.sizes[1] == 1);
    CHECK(counted.read.unaligned == 1);
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("call_is_a_hit_when_answered_here_or_page_sized") {
    Held one("*:size=4k:count=4:prefetch=0,%process:age=600:threads=0");
    File& file = file_of(one.fd);
    std::string data(8192, 'x');
    REQUIRE(write_at(one.fd, data.data(), 8192, 0) == 8192);
    REQUIRE(write_at(one.fd, data.data(), 8192, 8192) == 8192);
    buffer::flush_to_kernel(one.fd);
    file.lock.lock();
    buffer::suspend_buffering(file);
    buffer::resume_buffering(file);  // nothing is held
    file.lock.unlock();
    file.profitability.window_hits = file.profitability.window_calls = 0;
    file.profitability.probes = 9;
    const auto hits = [&](std::size_t bytes, off64_t offset) {
        REQUIRE(read_at(one.fd, data.data(), bytes, offset) == static_cast<ssize_t>(bytes));
        return file.profitability.window_hits;
    };
    const std::uint64_t before = file.statistics.read.hits;
    CHECK(hits(10, 0) == 0);
    CHECK(hits(10, 100) == 1);
    CHECK(file.statistics.read.hits == before + 1);
    CHECK(hits(4096, 4096) == 2);  // from storage, and no worse for it
    CHECK(hits(4095, 8192) == 2);
    CHECK(file.statistics.read.hits == before + 1);
    CHECK(file.profitability.window_calls == 4);
    CHECK(hits(1, 4096) == 2);  // a complete page bypassed the buffer, so it is not cached
}

TEST_CASE("free space is looked at after 16 MiB that were accepted") {
    Held one(quiet);
    File& file = file_of(one.fd);
    file.is_write_through = true;
    file.accepted_since_check = (16U << 20U) - 100;
    REQUIRE(write_at(one.fd, one.text.data(), 99, 0) == 99);
    CHECK(file.is_write_through);
    CHECK(file.accepted_since_check == (16U << 20U) - 1);
    REQUIRE(write_at(one.fd, one.text.data(), 1, 99) == 1);
    CHECK_FALSE(file.is_write_through);
    CHECK(file.accepted_since_check == 0);
}

TEST_CASE("nothing_is_buffered_after_process_end") {
    Held one(quiet);
    CHECK(in_child([&] {
        buffer::finish_buffering();
        char data[10];
        const IoPart part{data, 10};
        const CallResult answer = buffer::read(one.fd, &part, 1, 0);
        return mode_of(one.fd) == Mode::Released && contents(one.path) == one.text && !answer.is_done &&
               answer.pass_through_file == nullptr;
    }));
    REQUIRE(truncate(one.path.c_str(), 0) == 0);
    CHECK(in_child([&] {
        state.has_ended = true;  // by another thread, which did not wait for this file
        char data[10];
        const IoPart part{data, 10};
        const CallResult answer = buffer::read(one.fd, &part, 1, 0);
        return file_of(one.fd).lock.try_lock(0) && mode_of(one.fd) == Mode::Released &&
               contents(one.path) == one.text && !answer.is_done && answer.pass_through_file == nullptr;
    }));
}

TEST_CASE("process_end_flushes_running_files_and_releases_idle_files") {
    Held one(quiet);
    CHECK(in_child([&] {
        File& file = file_of(one.fd);
        file.active_calls.running = 1;
        buffer::finish_buffering();
        return mode_of(one.fd) == Mode::Active && contents(one.path) == one.text && state.files_lock.try_lock(0) &&
               file.lock.try_lock(0);
    }));
    REQUIRE(truncate(one.path.c_str(), 0) == 0);
    CHECK(in_child([&] {
        file_of(one.fd).active_calls.is_gate_closed = true;
        buffer::finish_buffering();
        return mode_of(one.fd) == Mode::Active && contents(one.path) == one.text;
    }));
    REQUIRE(truncate(one.path.c_str(), 0) == 0);
}
