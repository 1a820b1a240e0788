// SPDX-License-Identifier: Apache-2.0
// Tests what is read ahead, in which pieces and in which order.
#include "buffered.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace under_test;

namespace {

constexpr std::uint32_t MiB = 1U << 20U;

std::string file_with(const Folder& folder, std::size_t bytes) {
    std::string path = folder.path + "/data";
    std::string text(bytes, '\0');
    for (std::size_t position = 0; position < bytes; ++position) {
        text[position] = static_cast<char>(position * 2654435761U >> 13U);
    }
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    REQUIRE(write(fd, text.data(), bytes) == static_cast<ssize_t>(bytes));
    close(fd);
    return path;
}

/// Reads the file in small records and compares each with its content.
void read_through(int fd, const std::string& truth, std::size_t record) {
    std::vector<char> seen(record);
    for (std::size_t position = 0; position < truth.size(); position += record) {
        const std::size_t there = std::min(record, truth.size() - position);
        REQUIRE(read_at(fd, seen.data(), record, static_cast<off64_t>(position)) == static_cast<ssize_t>(there));
        REQUIRE(std::equal(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(there),
                           truth.begin() + static_cast<std::ptrdiff_t>(position)));
    }
}

}  // namespace

TEST_CASE("pages_of_a_file_that_is_only_read_are_a_mebibyte_at_most") {
    const Folder folder;
    const std::string path = file_with(folder, 3 * MiB);
    const std::string truth = contents(path);
    struct Case {
        const char* params;
        int flags;
        std::uint32_t page, pages, ahead;
    };
    const Case cases[] = {
        {"*:size=32m:count=2", O_RDONLY, MiB, 64, 32},
        {"*:size=32m:count=2:prefetch=0", O_RDONLY, MiB, 64, 0},
        {"*", O_RDONLY, MiB, 4, 1},
        {"*:size=32m:count=2", O_RDWR, 32 * MiB, 2, 1},
        {"*:size=32m:count=2:direct", O_RDONLY, 32 * MiB, 2, 1},
        {"*:size=128k:count=3", O_RDONLY, MiB / 8, 3, 1},
    };
    for (const Case& test_case : cases) {
        CAPTURE(test_case.params);
        use(test_case.params);
        const int fd = open_buffered(path, test_case.flags);
        const buffer::CachedPages& held = file_of(fd).pages;
        CHECK((held.page_size == test_case.page && held.max_pages == test_case.pages &&
               held.prefetch == test_case.ahead));
        read_through(fd, truth, 1000);
        CHECK(file_of(fd).statistics.read.storage_calls < 50);
        CHECK(close_buffered(fd) == 0);
    }
}

TEST_CASE("large_buffers_read_at_most_a_mebibyte_at_once") {
    const Folder folder;
    const std::string path = file_with(folder, 20 * MiB + 777);
    const std::string truth = contents(path);
    for (const bool slow : {false, true}) {
        for (const char* params : {"*:size=8m:count=2:alone", "*:size=8m:count=2:alone,%process:threads=0"}) {
            CAPTURE(params);
            use(params);
            slow_storage = slow;
            const int fd = open_buffered(path, O_RDONLY);
            read_through(fd, truth, 1000);
            const buffer::TransferCounts& reads = file_of(fd).statistics.read;
            CHECK(reads.storage_calls >= 21);
            CHECK(reads.storage_calls < 20 * 8 + 20);  // and of 128 KiB at least
            CHECK(reads.hits * 100 > reads.calls * 97);
            CHECK(close_buffered(fd) == 0);
            slow_storage = false;
        }
    }
    CHECK_FALSE(buffer::has_registered_descriptors());
}

TEST_CASE("stream_on_quick_storage_leaves_no_pages") {
    const Folder folder;
    const std::string path = file_with(folder, 20 * MiB);
    const std::string truth = contents(path);
    use_measured("*:size=32m:count=64:alone");
    const int fd = open_buffered(path, O_RDONLY);
    file_of(fd).profitability.best_bytes_per_us =
        1U << 30U;  // bytes per microsecond: quick for as long as this test lasts
    read_through(fd, truth, 1000);
    CHECK(file_of(fd).pages.count <= 3);
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("read-ahead runs in the planned order") {
    const Folder folder;
    const std::string path = file_with(folder, 12 * MiB);
    const std::string truth = contents(path);
    use("*:count=16:prefetch=8:alone,%process:threads=1");
    slow_storage = true;
    const int fd = open_buffered(path, O_RDONLY);
    std::vector<char> seen(1000);
    for (off64_t offset = 0; offset < 500'000;
         offset += 1000) {  // long enough that storage is known to be slow, and all is planned
        REQUIRE(read_at(fd, seen.data(), seen.size(), offset) == 1000);
    }
    buffer::File& file = file_of(fd);
    std::uint32_t remaining = 8;
    for (int tries = 0; tries < 20'000 && remaining > 0; ++tries) {
        file.lock.lock();
        std::int64_t farthest_begun = 0, nearest_waiting = 100;
        for (const buffer::Page* page = file.pages.oldest; page != nullptr; page = page->newer) {
            if (page->activity == buffer::PageActivity::Queued) {
                nearest_waiting = std::min(nearest_waiting, page->index);
            } else {
                farthest_begun = std::max(farthest_begun, page->index);
            }
        }
        remaining = file.pages.queued_for_read_ahead;
        file.lock.unlock();
        REQUIRE(farthest_begun < nearest_waiting);
        usleep(100);
    }
    CHECK(remaining == 0);
    CHECK(file.pages.count == 9);
    CHECK(close_buffered(fd) == 0);
    slow_storage = false;
}
