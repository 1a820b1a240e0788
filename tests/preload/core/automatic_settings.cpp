// SPDX-License-Identifier: Apache-2.0
// Tests which settings option auto chooses for given accesses, and when.
#include "model/choice.hpp"

#include "buffered.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace under_test;
using buffer::AccessWatch;
using buffer::BufferChoice;

namespace {

constexpr std::int64_t MiB = 1 << 20;

/// Returns the settings that are chosen after 200 calls, of which (*call)(i, watch) makes the i-th.
template <class Call>
BufferChoice choose_settings_after(Call call, std::uint64_t block = 4096, int calls = 200) {
    AccessWatch watch;
    for (int i = 0; i < calls; ++i) {
        call(i, watch);
    }
    return buffer::choose_settings(watch, block);
}

void check(const BufferChoice& got, std::uint32_t page_size, std::uint32_t pages, std::uint32_t ahead) {
    CAPTURE(got.reason);
    CHECK(got.is_profitable);
    CHECK(got.page_size == page_size);
    CHECK(got.pages == pages);
    CHECK(got.prefetch == ahead);
}

}  // namespace

TEST_CASE("streams_get_pages_of_64_records_and_read_ahead") {
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(true, i * 1000, 1000, 0); }), MiB, 4, 0);
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, i * 1000, 1000, 0); }), MiB, 4, 2);
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(true, i * 100000, 100000, 0); }), 8 * MiB, 4,
          0);
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(true, i * 1000000, 1000000, 0); }), 16 * MiB,
          4, 0);
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(true, i * 1000, 1000, 0); }, 4 << 20),
          4 * MiB, 4, 0);
}

TEST_CASE("backward_and_strided_access_gets_more_pages") {
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, (1000 - i) * 8000LL, 8000, 0); }), MiB,
          16, 2);
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, i * 5000LL, 1000, 0); }), MiB, 16, 2);
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(true, i * 65536LL, 1000, 0); }), MiB, 16, 0);
    // Four calls here, four calls there.
    check(choose_settings_after(
              [](int i, AccessWatch& watch) { watch.add(true, i / 4 % 2 * 100 * MiB + i * 1000LL, 1000, 0); }),
          MiB, 16, 0);
    // Reads and writes in turn, each where the previous one ended.
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(i % 2 == 0, i * 1000LL, 1000, 0); }), MiB, 16,
          2);
}

TEST_CASE("overlapping_calls_get_pages_of_64_new_parts") {
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, (1000 - i) * 8000LL, 131072, 0); }),
          MiB, 16, 2);
    check(choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, i * 64000LL, 131072, 0); }), 4 * MiB,
          16, 2);
}

TEST_CASE("large_calls_from_memory_choose_nothing") {
    const auto choose_stream = [](int bytes, std::uint64_t ns) {
        return choose_settings_after(
            [&](int i, AccessWatch& watch) { watch.add(false, static_cast<std::int64_t>(i) * bytes, bytes, ns); });
    };
    CHECK_FALSE(choose_stream(10000, 2500).is_profitable);  // 4 GB/s
    CHECK(std::string(choose_stream(10000, 2500).reason).find("from memory") != std::string::npos);
    CHECK(choose_stream(10000, 10000).is_profitable);  // 1 GB/s
    CHECK(choose_stream(8191, 2000).is_profitable);
    // 131,072 bytes in 8 microseconds, of which 8,000 are new: 1 GB/s
    CHECK(choose_settings_after([](int i, AccessWatch& watch) {
              watch.add(false, (1000 - i) * 8000LL, 131072, 8000);
          }).is_profitable);
}

TEST_CASE("scattered_large_distant_or_few_calls_choose_nothing") {
    std::mt19937 random(4);
    CHECK_FALSE(choose_settings_after([&](int, AccessWatch& watch) {
                    watch.add(false, random() % 100000 * 1000LL, 1000, 0);
                }).is_profitable);
    CHECK_FALSE(
        choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, i * MiB, MiB, 0); }).is_profitable);
    CHECK_FALSE(
        choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, i * 65537LL, 1000, 0); }).is_profitable);
    CHECK_FALSE(
        choose_settings_after([](int i, AccessWatch& watch) { watch.add(false, i * 1000LL, 1000, 0); }, 4096, 199)
            .is_profitable);
    CHECK_FALSE(choose_settings_after([](int i, AccessWatch& watch) {
                    watch.add(false, i / 2 * 10 * MiB + i * 1000LL, 1000, 0);
                }).is_profitable);
}

TEST_CASE("stream_is_buffered_after_200_calls_and_remembered") {
    const Folder folder;
    use("*:auto", true);
    const std::string path = folder.path + "/stream";
    std::string record(1000, 'x');
    std::string truth;
    for (int opening = 0; opening < 2; ++opening) {
        const int fd = open_buffered(path, O_RDWR | O_CREAT);
        buffer::File& file = file_of(fd);
        CHECK(file.is_watched == (opening == 0));
        for (int i = 0; i < 1000; ++i) {
            if (opening == 0 && i == 199) {
                CHECK(file.is_watched);
                CHECK(file.statistics.write.storage_calls == 199);
            }
            record.assign(record.size(), static_cast<char>('a' + i % 26));
            REQUIRE(write_at(fd, record.data(), record.size(), i * 1000LL) == 1000);
            truth.replace(std::min<std::size_t>(truth.size(), static_cast<std::size_t>(i) * 1000), 1000, record);
        }
        CHECK_FALSE(file.is_watched);
        CHECK(file.choice.is_profitable);
        CHECK(file.pages.page_size == 1U << 20U);
        CHECK(file.pages.max_pages == 4);
        CHECK(file.pages.prefetch == 0);
        CHECK(file.statistics.write.calls == 1000);
        CHECK(file.statistics.write.storage_calls < (opening == 0 ? 205 : 5));
        CHECK(close_buffered(fd) == 0);
        CHECK((contents(path) == truth));
    }
}

TEST_CASE("scattered_file_passes_through_until_a_stream_follows") {
    const Folder folder;
    use("*:auto", true);
    const std::string path = folder.path + "/scattered";
    REQUIRE(truncate((close(open(path.c_str(), O_CREAT | O_RDWR, 0644)), path.c_str()), 1LL << 32U) == 0);
    const int fd = open_buffered(path, O_RDWR);
    buffer::File& file = file_of(fd);
    std::mt19937_64 random(9);
    std::vector<char> data(1000);
    for (int i = 0; i < 500; ++i) {
        REQUIRE(read_at(fd, data.data(), 1000, static_cast<off64_t>(random() % ((1ULL << 32U) - 1000))) == 1000);
    }
    CHECK(file.mode.load() == buffer::Mode::Suspended);
    CHECK_FALSE(file.choice.is_profitable);
    CHECK(file.pages.count == 0);
    CHECK(file.statistics.read.storage_calls == 200);
    for (int i = 0; i < 6000; ++i) {
        REQUIRE(read_at(fd, data.data(), 1000, i * 1000LL) == 1000);
    }
    CHECK(file.mode.load() == buffer::Mode::Active);
    CHECK(file.choice.is_profitable);
    CHECK(file.pages.prefetch == 2);
    CHECK(file.statistics.read.hits > 2000);
    CHECK(close_buffered(fd) == 0);
}

namespace {

/// 200 reads of 1,000 bytes, each behind the one before.
AccessWatch stream_of_reads() {
    AccessWatch watch;
    watch.read = {.calls = 200, .consecutive = 199, .bytes = 200'000, .new_bytes = 200'000};
    return watch;
}

/// No byte was in the call before, too.
void set_bytes(AccessWatch::WatchedDirection& direction, std::uint64_t bytes) {
    direction.bytes = direction.new_bytes = bytes;
}

}  // namespace

TEST_CASE("watch_counts_each_call_and_first_follows_nothing") {
    AccessWatch watch;
    watch.add(true, 0, 100, 0);
    CHECK(watch.write.consecutive == 0);
    watch.add(true, 100, 50, 0);
    watch.add(false, 150, 10, 0);
    watch.add(false, 0, 10, 0);
    watch.add(true, 10, 10, 0);
    CHECK(watch.write.calls == 3);
    CHECK(watch.write.bytes == 160);
    CHECK(watch.write.consecutive == 2);
    CHECK(watch.read.calls == 2);
    CHECK(watch.read.bytes == 20);
    CHECK(watch.read.consecutive == 1);
    CHECK(watch.switches == 2);
    CHECK(watch.calls() == 5);
    CHECK(watch.last_begin == 10);
    CHECK(watch.last_end == 20);
}

TEST_CASE("each rule of the choice turns at its number") {
    const auto choice = [](auto change, std::uint64_t block = 4096) {
        AccessWatch watch = stream_of_reads();
        change(watch);
        return buffer::choose_settings(watch, block);
    };
    check(choice([](AccessWatch&) {}), MiB, 4, 2);
    CHECK_FALSE(choice([](AccessWatch& watch) { watch.read.calls = 199; }).is_profitable);
    CHECK_FALSE(choice([](AccessWatch& watch) { watch.read.bytes = 200ULL << 20U; }).is_profitable);
    CHECK(choice([](AccessWatch& watch) { watch.read.bytes = (200ULL << 20U) - 1; }).is_profitable);
    CHECK_FALSE(choice([](AccessWatch& watch) { watch.read.consecutive = 100; }).is_profitable);
    check(choice([](AccessWatch& watch) { watch.read.consecutive = 101; }), MiB, 16, 2);
    check(choice([](AccessWatch& watch) { watch.read.consecutive = 150; }), MiB, 16, 2);
    check(choice([](AccessWatch& watch) { watch.read.consecutive = 151; }), MiB, 4, 2);
    check(choice([](AccessWatch& watch) { watch.switches = 24; }), MiB, 4, 2);
    check(choice([](AccessWatch& watch) { watch.switches = 25; }), MiB, 16, 2);
    // A page has 64 records, at most 16 MiB, and at least the preferred transfer size of the file system.
    check(choice([](AccessWatch& watch) { set_bytes(watch.read, 200 * 16'384); }), MiB, 4, 2);
    check(choice([](AccessWatch& watch) { set_bytes(watch.read, 200 * 16'384 + 1); }), 2 * MiB, 4, 2);
    check(choice([](AccessWatch& watch) { set_bytes(watch.read, 200 * 300'000); }), 16 * MiB, 4, 2);
    check(choice([](AccessWatch&) {}, MiB), MiB, 4, 2);
    check(choice([](AccessWatch&) {}, MiB + 1), 2 * MiB, 4, 2);
    check(choice([](AccessWatch&) {}, 1ULL << 40U), 16 * MiB, 4, 2);
    // The direction with more calls counts; sequential reads get read-ahead.
    check(choice([](AccessWatch& watch) {
              watch.write = {.calls = 200, .consecutive = 199, .bytes = 200 * 100'000, .new_bytes = 200 * 100'000};
          }),
          MiB, 4, 2);
    check(choice([](AccessWatch& watch) {
              watch.write = {.calls = 201, .consecutive = 199, .bytes = 201 * 100'000, .new_bytes = 201 * 100'000};
          }),
          8 * MiB, 4, 2);
    const auto written = [](std::uint32_t reads, std::uint32_t follow_stream) {
        AccessWatch watch;
        watch.write = {.calls = 300, .consecutive = 299, .bytes = 300'000};
        watch.read = {.calls = reads, .consecutive = follow_stream, .bytes = reads};
        return buffer::choose_settings(watch, 4096).prefetch;
    };
    CHECK(written(0, 0) == 0);
    CHECK(written(10, 5) == 0);
    CHECK(written(10, 6) == 2);
}

TEST_CASE("short_distance_needs_a_quarter_and_half_of_calls") {
    const auto choice = [](std::int64_t stride, int times) {
        AccessWatch watch;
        watch.read = {.calls = 200, .bytes = 200'000};
        for (int i = 0; i < times; ++i) {
            watch.strides.add(stride);
        }
        return buffer::choose_settings(watch, 4096);
    };
    CHECK(choice(5000, 101).is_profitable);
    CHECK_FALSE(choice(5000, 100).is_profitable);
    CHECK(choice(65'536, 101).is_profitable);
    CHECK_FALSE(choice(65'537, 101).is_profitable);
    CHECK(choice(-65'536, 101).is_profitable);
    CHECK_FALSE(choice(-65'537, 101).is_profitable);
    CHECK_FALSE(choice(0, 150).is_profitable);
    CHECK(choice(5000, 101).prefetch == 2);
    CHECK(std::string(choice(5000, 101).reason) == "its small calls keep a short distance");
    CHECK(std::string(buffer::choose_settings(stream_of_reads(), 1).reason) == "its small calls follow each other");
    const auto two = [](int first, int second) {
        AccessWatch watch;
        watch.read = {.calls = 200, .bytes = 200'000};
        for (int i = 0; i < first + second; ++i) {
            watch.strides.add(i < first ? 5000 : 7000);
        }
        return buffer::choose_settings(watch, 4096).is_profitable;
    };
    CHECK(two(51, 51));
    CHECK_FALSE(two(51, 50));  // of which only one comes often
}

TEST_CASE("watched_file_has_room_for_every_choice") {
    const Folder folder;
    use("*:auto", true);
    const int fd = open_buffered(folder.path + "/new", O_RDWR | O_CREAT);
    CHECK(file_of(fd).is_watched);
    CHECK(file_of(fd).pages.page_size == 1 << 20);
    CHECK(file_of(fd).pages.max_pages == 16);
    CHECK(file_of(fd).pages.hash_bucket_mask >= 15);
    std::string record(1000, 'x');
    for (int i = 0; i < 200; ++i) {
        REQUIRE(write_at(fd, record.data(), 1000, i * 1000) == 1000);
    }
    CHECK_FALSE(file_of(fd).is_watched);
    CHECK(file_of(fd).watch.calls() == 0);
    CHECK(file_of(fd).profitability.suspension_calls == 0);
    CHECK(file_of(fd).active_calls.running == 0);
    CHECK_FALSE(file_of(fd).active_calls.is_gate_closed);
    const int other = open_buffered(folder.path + "/neu", O_RDWR | O_CREAT);
    CHECK(file_of(other).is_watched);  // another name
    CHECK(close_buffered(other) == 0);
    CHECK(close_buffered(fd) == 0);
}
