// SPDX-License-Identifier: Apache-2.0
// Tests exactly which bytes are requested from storage and when, and which page is evicted.
#include "buffered.hpp"

#include "cache/pages.hpp"
#include "files/shared_memory.hpp"
#include "model/state.hpp"
#include "system/high_descriptor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

using namespace under_test;
using buffer::File;
using buffer::state;

namespace {

/// A file of `size` bytes of '-', open for reading and writing.
struct Opened {
    Folder folder;
    std::string path = folder.path + "/data";
    int fd = -1;
    File* file = nullptr;
    std::string data = std::string(1 << 20, 'x');
    explicit Opened(const char* params, std::size_t size = 1 << 20) {
        stop_pool();
        use_measured(params);
        const int new_file = open(path.c_str(), O_CREAT | O_RDWR, 0644);
        const std::string content(size, '-');
        REQUIRE(write(new_file, content.data(), size) == static_cast<ssize_t>(size));
        close(new_file);
        fd = open_buffered(path, O_RDWR);
        file = &file_of(fd);
    }
    ~Opened() {
        if (fd >= 0) {
            CHECK(close_buffered(fd) == 0);
        }
    }
    /// Returns the bytes that a read of [at, at + bytes) requests from storage.
    std::uint64_t read(off64_t offset, std::size_t bytes) {
        const std::uint64_t before = file->statistics.read.storage_bytes;
        REQUIRE(read_at(fd, data.data(), bytes, offset) == static_cast<ssize_t>(bytes));
        return file->statistics.read.storage_bytes - before;
    }
    /// Whether a write stays here for now.
    bool write_stays(off64_t offset, std::size_t bytes) {
        const std::uint64_t before = file->statistics.write.storage_calls;
        REQUIRE(write_at(fd, data.data(), bytes, offset) == static_cast<ssize_t>(bytes));
        return file->statistics.write.storage_calls == before;
    }
    std::string there(std::size_t position) const { return contents(path).substr(position, 1); }
};

// The maximum age of dirty pages is longer than a test.
constexpr const char* plain = "*:size=64k:count=4:prefetch=0,%process:age=600";
constexpr const char* small_pages = "*:size=4k:count=2:prefetch=0,%process:threads=0:age=600";

}  // namespace

TEST_CASE("isolated_call_reads_its_bytes_only_and_stream_reads_more") {
    Opened one(plain);
    CHECK(one.read(500'000, 100) == 100);
    CHECK(one.read(700'000, 100) == 100);
    CHECK(one.read(0, 100) == 100);  // not the first call, and not behind the one before
    CHECK(one.read(100, 100) == 16'384);
    CHECK(one.read(200, 16'284) == 0);
    CHECK(one.file->statistics.read.hits == 1);
    CHECK(one.file->statistics.read.calls == 5);
    CHECK(one.file->statistics.read.consecutive == 2);
    // The fourth consecutive call extends beyond the page, so the missing rest of the page is loaded.
    CHECK(one.read(16'484, 4000) == 65'536 - 16'384);
    CHECK(one.read(20'484, 4000) == 0);
}

TEST_CASE("first_call_at_file_begin_counts_as_stream") {
    Opened one(plain);
    CHECK(one.read(0, 100) == 16'384);
    Opened small(plain, 1000);
    CHECK(small.read(0, 100) == 1000);  // there is no more
}

TEST_CASE("backward_stream_loads_earlier_bytes") {
    Opened one(plain);
    CHECK(one.read(3 * 65'536 + 3392, 100) == 100);
    CHECK(one.read(3 * 65'536 + 3292, 100) == 3392);  // all up to the beginning of the page
    Opened far(plain);
    CHECK(far.read(3 * 65'536 + 40'100, 100) == 100);
    CHECK(far.read(3 * 65'536 + 40'000, 100) == 16'384);
    CHECK(far.read(3 * 65'536 + 40'100 - 16'384, 100) == 0);
}

TEST_CASE("write_is_held_at_end_or_in_stream_else_straight") {
    Opened one(plain);
    CHECK_FALSE(one.write_stays(500'000, 100));
    CHECK(one.there(500'000) == "x");
    CHECK(one.write_stays(1 << 20, 100));
    CHECK(contents(one.path).size() == 1 << 20);
    CHECK(one.write_stays(17 * 65'536 + 5, 100));  // behind page 16
    CHECK_FALSE(one.write_stays(5 * 65'536, 100));
    CHECK(one.write_stays(5 * 65'536 + 100, 100));
    CHECK(one.there(5 * 65'536 + 100) == "-");
    CHECK(one.file->statistics.write.calls == 5);
    CHECK(one.file->statistics.write.bytes == 500);
}

TEST_CASE("bypassed write arrives after earlier buffered writes") {
    Opened one(plain);
    CHECK(one.write_stays(1 << 20, 100));
    CHECK(contents(one.path).size() == 1 << 20);
    errno = EINTR;  // of an earlier call: this one is not made again for it
    REQUIRE(write_at(one.fd, one.data.data(), 100, 500'000) == 100);
    CHECK(one.file->statistics.write.storage_calls == 2);
    CHECK(contents(one.path).size() == (1 << 20) + 100);
    CHECK_FALSE(buffer::has_dirty_pages(one.fd));
}

TEST_CASE("least recently used clean page is evicted") {
    Opened one(small_pages);
    one.file->rule->may_suspend = false;
    CHECK(one.read(0, 10) == 4096);
    CHECK(one.read(4096, 10) == 4096);
    CHECK(one.read(100, 10) == 0);
    CHECK(one.read(8192, 10) == 4096);
    CHECK(buffer::find_page(*one.file, 0) != nullptr);
    CHECK(buffer::find_page(*one.file, 1) == nullptr);
    CHECK(one.read(100, 10) == 0);
    CHECK(one.read(4096, 10) == 4096);
    CHECK(buffer::find_page(*one.file, 2) == nullptr);
    CHECK(one.file->pages.count == 2);
}

TEST_CASE("oldest_dirty_page_is_written_first") {
    Opened one(small_pages);
    one.file->rule->may_suspend = false;
    CHECK(one.write_stays(0, 10));
    CHECK(one.write_stays(4096, 10));
    CHECK(one.write_stays(5, 10));  // again, and yet the older one
    CHECK_FALSE(one.write_stays(8192, 10));
    CHECK(one.there(0) == "x");
    CHECK(one.there(4096) == "-");
    CHECK(one.there(8192) == "-");
    CHECK(one.file->statistics.write.storage_bytes == 15);
    CHECK(one.file->dirty.pages == 2);
}

TEST_CASE("calls_over_pages_split_and_full_pages_bypass_the_buffer") {
    Opened one("*:size=4k:count=8:prefetch=0,%process:threads=0:age=600");
    one.file->profitability.probes = 9;  // not to see how fast storage is
    CHECK(one.read(0, 100) == 4096);
    CHECK(one.read(100, 3 * 4096) ==
          2 * 4096 + 4096);  // the end of the first page is cached, two pages bypass the buffer, the last is loaded
    CHECK(buffer::find_page(*one.file, 1) == nullptr);
    CHECK(buffer::find_page(*one.file, 3) != nullptr);
    CHECK(one.file->pages.count == 2);
}

TEST_CASE("empty_vector_parts_move_nothing") {
    Opened one(small_pages);
    one.file->rule->may_suspend = false;
    std::string first = "abc", second = "defgh";
    const buffer::IoPart out[] = {{first.data(), 3}, {nullptr, 0}, {second.data(), 5}};
    CHECK(buffer::write(one.fd, out, 3, 100).value == 8);
    std::string first_read = "...", third_read = ".....";
    const buffer::IoPart in[] = {{first_read.data(), 3}, {nullptr, 0}, {third_read.data(), 5}};
    CHECK(buffer::read(one.fd, in, 3, 100).value == 8);
    CHECK(first_read + third_read == "abcdefgh");
    const buffer::IoPart nothing[] = {{nullptr, 0}, {nullptr, 0}};
    CHECK(buffer::make_real_call(buffer::read(one.fd, nothing, 2, 100), [] { return 0; }) == 0);
}

TEST_CASE("memory_limit_is_setting_or_share_of_free_memory") {
    use("*,%process:maxmem=64k");
    CHECK(state.max_memory_bytes.load() == 64 << 10);
    use("*,%process:maxmem=1000000g");
    const std::uint64_t limit = state.max_memory_bytes.load();
    CHECK(limit >= 16 << 20);
    CHECK(limit < 1000000ULL << 30U);
}

TEST_CASE("private_descriptor_moves_when_program_needs_its_number") {
    use(plain);
    const int null = open("/dev/null", O_WRONLY);
    const int fd = static_cast<int>(system::duplicate_to_high_descriptor(null));
    const int other = static_cast<int>(system::duplicate_to_high_descriptor(null));
    close(null);
    buffer::mark_own_descriptor(fd);
    buffer::mark_own_descriptor(other);
    state.report_fd = fd;
    state.json_report_fd = other;
    buffer::move_own_descriptor(fd);
    CHECK(state.report_fd != fd);
    CHECK(state.json_report_fd == other);
    CHECK(buffer::is_own_descriptor(state.report_fd));
    CHECK_FALSE(buffer::is_own_descriptor(fd));
    CHECK(fcntl(state.report_fd, F_GETFD) >= 0);
    for (const int own_descriptor : {fd, other, state.report_fd}) {
        buffer::unmark_own_descriptor(own_descriptor);
        close(own_descriptor);
    }
    state.report_fd = state.json_report_fd = -1;
}

TEST_CASE("lock_on_mapped_file_disables_buffering") {
    Opened limit(plain);
    const std::string mapped = limit.folder.path + "/mapped";
    const int fd = open(mapped.c_str(), O_CREAT | O_RDWR, 0644);
    buffer::record_range_lock(fd);
    CHECK_FALSE(state.is_disabled.load());
    buffer::record_shared_map(fd);
    buffer::record_range_lock(limit.fd);
    CHECK_FALSE(state.is_disabled.load());
    CHECK(limit.file->mode.load() == buffer::Mode::Active);
    buffer::record_range_lock(fd);
    CHECK(state.is_disabled.load());
    CHECK(limit.file->mode.load() == buffer::Mode::Released);
    CHECK(std::string(limit.file->release_reason).find("as processes of a database do") != std::string::npos);
    state.is_disabled = false;
    close(fd);
}
