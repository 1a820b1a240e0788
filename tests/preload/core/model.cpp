// SPDX-License-Identifier: Apache-2.0
// Compares a buffered file with a plain one: the same operations must have the same visible results.
#include "buffered.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace under_test;

namespace {

constexpr const char* kinds[] = {
    "*:size=512:count=2:prefetch=1",        "*:size=4k:count=5:prefetch=2", "*:size=64k:count=3", "*:size=1M:count=4",
    "*:size=8k:count=4,%process:threads=0", "*:size=7k:count=6:prefetch=4"};

}  // namespace

TEST_CASE("random_operations_equal_plain_file") {
    const Folder folder;
    for (const char* params : kinds) {
        CAPTURE(params);
        use(params);
        for (unsigned seed = 1; seed <= 6; ++seed) {
            std::mt19937 random(seed);
            const std::string path = folder.path + "/" + std::to_string(seed) + params[7];
            std::string truth;
            int fd[3];
            for (int& descriptor : fd) {
                descriptor = open_buffered(path, O_RDWR | O_CREAT);
            }
            std::vector<char> data(1U << 17U);
            for (int step = 0; step < 1500; ++step) {
                int& descriptor = fd[random() % 3];
                const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 70000 : 900);
                const std::size_t position = random() % 200000;
                const auto kind = random() % 100;
                if (kind < 45) {
                    for (std::size_t i = 0; i < bytes; ++i) {
                        data[i] = static_cast<char>(random());
                    }
                    REQUIRE(write_at(descriptor, data.data(), bytes, static_cast<off64_t>(position)) ==
                            static_cast<ssize_t>(bytes));
                    truth.resize(std::max(truth.size(), position + bytes));
                    truth.replace(position, bytes, data.data(), bytes);
                } else if (kind < 90) {
                    const std::size_t there = position < truth.size() ? std::min(bytes, truth.size() - position) : 0;
                    REQUIRE(read_at(descriptor, data.data(), bytes, static_cast<off64_t>(position)) ==
                            static_cast<ssize_t>(there));
                    REQUIRE(std::memcmp(data.data(), truth.data() + std::min(position, truth.size()), there) == 0);
                } else if (kind < 94) {
                    const buffer::PassThrough around(descriptor);
                    REQUIRE(ftruncate(descriptor, static_cast<off_t>(position)) == 0);
                    truth.resize(position);
                } else if (kind < 97) {
                    REQUIRE(buffer::flush_descriptor(descriptor) == 0);
                    REQUIRE((contents(path) == truth));
                } else {
                    REQUIRE(close_buffered(descriptor) == 0);
                    descriptor = open_buffered(path, O_RDWR);
                }
            }
            for (const int descriptor : fd) {
                REQUIRE(close_buffered(descriptor) == 0);
            }
            REQUIRE((contents(path) == truth));
        }
    }
    CHECK_FALSE(buffer::has_registered_descriptors());
}

TEST_CASE("threads_on_separate_ranges_read_their_data") {
    const Folder folder;
    for (const char* params : kinds) {
        use(params);
        const std::string path = folder.path + "/shared" + params[7];
        const int fd = open_buffered(path, O_RDWR | O_CREAT);
        std::vector<std::thread> threads;
        std::atomic<int> wrong{0};
        for (int number = 0; number < 4; ++number) {
            threads.emplace_back([&, number] {
                std::mt19937 random(static_cast<unsigned>(number));
                std::vector<char> mine(300);
                std::vector<char> seen(300);
                for (int i = 0; i < 400; ++i) {
                    const off64_t offset = (random() % 200 * 4 + static_cast<unsigned>(number)) * 300LL;
                    std::memset(mine.data(), 'a' + i % 26, mine.size());
                    wrong += write_at(fd, mine.data(), mine.size(), offset) != 300 ? 1 : 0;
                    wrong += read_at(fd, seen.data(), seen.size(), offset) != 300 || seen != mine ? 1 : 0;
                    if (i % 97 == 0) {
                        const buffer::PassThrough around(fd);
                        wrong += pread(fd, seen.data(), seen.size(), offset) != 300 || seen != mine ? 1 : 0;
                    }
                    if (i % 50 == 0) {
                        const int other = open(path.c_str(), O_RDONLY);
                        buffer::adopt_descriptor({.fd = other, .flags = O_RDONLY, .path = path.c_str()});
                        wrong += read_at(other, seen.data(), seen.size(), offset) != 300 || seen != mine ? 1 : 0;
                        wrong += close_buffered(other);
                    }
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        CHECK(wrong == 0);
        CHECK(close_buffered(fd) == 0);
    }
}

TEST_CASE("delayed_write_error_reaches_each_descriptor_once") {
    const Folder folder;
    use("*:size=4k:count=4,%process:threads=0");
    const std::string path = folder.path + "/full";
    const int fd = open_buffered(path, O_RDWR | O_CREAT);
    const int other = open_buffered(path, O_RDWR);
    std::vector<char> data(1000, 'x');
    REQUIRE(write_at(fd, data.data(), data.size(), 0) == 1000);
    failing_writes = 1;
    CHECK(buffer::flush_descriptor(fd) == ENOSPC);
    CHECK(write_at(other, data.data(), data.size(), 1000) == -ENOSPC);  // the other description learns of it too, once
    CHECK(write_at(other, data.data(), data.size(), 1000) == 1000);
    CHECK(buffer::flush_descriptor(fd) == 0);  // there is space again: nothing was lost
    CHECK((contents(path) == std::string(2000, 'x')));
    CHECK(close_buffered(other) == 0);
    CHECK(write_at(fd, data.data(), data.size(), 2000) == 1000);
    failing_writes = 1000;
    CHECK(close_buffered(fd) == ENOSPC);
    failing_writes = 0;
    CHECK((contents(path) == std::string(2000, 'x')));
}

TEST_CASE("small_records_become_few_calls_and_streams_read_ahead") {
    const Folder folder;
    settings::Settings& settings = use_measured("*:size=64k:count=4:prefetch=2");
    const std::string path = folder.path + "/stream";
    int fd = open_buffered(path, O_RDWR | O_CREAT);
    std::vector<char> record(1000, 'r');
    for (int i = 0; i < 2000; ++i) {
        REQUIRE(write_at(fd, record.data(), record.size(), i * 1000LL) == 1000);
    }
    const buffer::File* file = &file_of(fd);
    CHECK(file->statistics.write.calls == 2000);
    CHECK(file->statistics.write.storage_calls <= 2000000 / 65536 + 2);
    CHECK(close_buffered(fd) == 0);
    fd = open_buffered(path, O_RDONLY);
    file = &file_of(fd);
    slow_storage = true;
    for (int i = 1999; i >= 0; --i) {  // backward, as direct-access programs do
        REQUIRE(read_at(fd, record.data(), record.size(), i * 1000LL) == 1000);
    }
    CHECK(file->statistics.read.storage_calls <= 2 * 2000000 / 65536);
    CHECK(file->statistics.read_aheads_started > 10);
    slow_storage = false;
    CHECK(close_buffered(fd) == 0);
    fd = open_buffered(path, O_RDONLY);
    file = &file_of(fd);
    std::mt19937 random(5);
    for (int i = 0; i < 100; ++i) {
        REQUIRE(read_at(fd, record.data(), 100, static_cast<off64_t>(random() % 1990000)) == 100);
    }
    CHECK(file->statistics.read_aheads_started == 0);
    CHECK(file->statistics.read.storage_bytes < 100 * 100 + 5 * 65536);
    CHECK(close_buffered(fd) == 0);
    CHECK(settings.rules[0].match_count == 3);
}

TEST_CASE("backward_overlapping_calls_hit_pages_on_slow_storage") {
    const Folder folder;
    use("*:size=1M:count=4:prefetch=1");
    const std::string path = folder.path + "/backward";
    constexpr std::int64_t bytes = 131072;
    constexpr std::int64_t step = 8000;
    constexpr int calls = 400;
    REQUIRE(truncate((close(open(path.c_str(), O_CREAT | O_RDWR, 0644)), path.c_str()), calls * step + bytes) == 0);
    const int fd = open_buffered(path, O_RDONLY);
    const buffer::File* file = &file_of(fd);
    std::vector<char> data(bytes);
    slow_storage = true;
    for (int i = calls; i >= 0; --i) {
        REQUIRE(read_at(fd, data.data(), data.size(), i * step) == bytes);
    }
    slow_storage = false;
    CHECK(file->statistics.read.storage_calls < 30);
    CHECK(file->statistics.read_aheads_used > 0);
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("scattered_access_suspends_and_stream_resumes") {
    const Folder folder;
    use_measured("*:size=64k:count=4:prefetch=2");
    const std::string path = folder.path + "/scattered";
    REQUIRE(truncate((close(open(path.c_str(), O_CREAT | O_RDWR, 0644)), path.c_str()), 1LL << 32U) == 0);
    const int fd = open_buffered(path, O_RDWR);
    const buffer::File* file = &file_of(fd);
    std::mt19937_64 random(9);
    std::vector<char> data(1000);
    for (int i = 0; i < 600; ++i) {
        REQUIRE(read_at(fd, data.data(), 1000, static_cast<off64_t>(random() % ((1ULL << 32U) - 1000))) == 1000);
    }
    CHECK(file->mode.load() == buffer::Mode::Suspended);
    for (int i = 0; i < 6000; ++i) {
        REQUIRE(read_at(fd, data.data(), 1000, i * 1000LL) == 1000);
    }
    CHECK(file->mode.load() == buffer::Mode::Active);
    CHECK(file->statistics.read.hits > 2000);
    CHECK(close_buffered(fd) == 0);
}

namespace {

/// A sparse file of 4 GiB whose buffering scattered reads have suspended.
int open_asleep(const std::string& path) {
    REQUIRE(truncate((close(open(path.c_str(), O_CREAT | O_RDWR, 0644)), path.c_str()), 1LL << 32U) == 0);
    const int fd = open_buffered(path, O_RDWR);
    std::mt19937_64 random(9);
    char data[100];
    for (int i = 0; i < 600; ++i) {
        REQUIRE(read_at(fd, data, sizeof(data), static_cast<off64_t>(random() % (1ULL << 31U))) == 100);
    }
    REQUIRE(file_of(fd).mode.load() == buffer::Mode::Suspended);
    return fd;
}

}  // namespace

TEST_CASE("suspended_file_stays_while_another_thread_passes") {
    const Folder folder;
    use_measured("*:size=64k:count=4");
    const std::string path = folder.path + "/slow";
    const int fd = open_asleep(path);
    const buffer::File* file = &file_of(fd);
    std::atomic<int> stage{0};
    std::thread slow([&] {
        char data[100];
        REQUIRE(read_at(fd, data, sizeof(data), 0) == 100);  // the first call takes a place
        buffer::BypassSlot* slot = buffer::enter_bypass(fd);
        REQUIRE(slot != nullptr);
        stage = 1;
        while (stage != 2) {
            usleep(1000);
        }
        REQUIRE(pwrite(fd, "late", 4, 1 << 20) == 4);
        buffer::leave_bypass(*slot);
    });
    while (stage != 1) {
        usleep(1000);
    }
    std::vector<char> data(1000);
    for (int i = 0; i < 2000; ++i) {  // more than the sleep lasts
        REQUIRE(read_at(fd, data.data(), 1000, i * 1000LL) == 1000);
    }
    CHECK(file->mode.load() == buffer::Mode::Suspended);
    stage = 2;
    slow.join();
    for (int i = 0; i < 10000 && file->mode.load() == buffer::Mode::Suspended; ++i) {
        REQUIRE(read_at(fd, data.data(), 1000, i * 1000LL) == 1000);
    }
    CHECK(file->mode.load() == buffer::Mode::Active);
    REQUIRE(read_at(fd, data.data(), 4, 1 << 20) == 4);
    CHECK(std::string(data.data(), 4) == "late");
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("longjmp_out_of_a_call_suspends_only_its_file") {
    const Folder folder;
    use_measured("*:size=64k:count=4");
    const int fd = open_asleep(folder.path + "/left");
    const buffer::File* file = &file_of(fd);
    buffer::BypassSlot* slot = buffer::enter_bypass(fd);
    REQUIRE(slot != nullptr);
    CHECK(buffer::enter_bypass(fd) == nullptr);  // as in a handler that interrupted the call
    std::vector<char> data(1000);
    for (int i = 0; i < 5000; ++i) {
        REQUIRE(write_at(fd, data.data(), 1000, i * 1000LL) == 1000);
    }
    CHECK(file->mode.load() == buffer::Mode::Suspended);
    CHECK(close_buffered(fd) == 0);
    buffer::leave_bypass(*slot);
}

TEST_CASE("ending threads release their bypass slots") {
    const Folder folder;
    use_measured("*:size=64k:count=4");
    const int fd = open_asleep(folder.path + "/threads");
    for (int number = 0; number < 200; ++number) {
        std::thread([&] {
            char data[100];
            REQUIRE(read_at(fd, data, sizeof(data), number * 4096LL) == 100);
            CHECK(buffer::own_bypass_slot != nullptr);
        }).join();
    }
    CHECK(close_buffered(fd) == 0);
}
