// SPDX-License-Identifier: Apache-2.0
// Which files are handed to the threads of the library, and what these do on their walk over all files: without a
// thread.
#include "dirty_file.hpp"

#include "model/state.hpp"
#include "modes/modes.hpp"
#include "system/clock.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

using namespace under_test;
using buffer::File;
using buffer::Mode;
using buffer::pool;

namespace {

/// A pool that queues files and has no thread. Must be created after the settings.
struct PoolWithoutThreads {
    PoolWithoutThreads() {
        stop_pool();
        pool.running_threads = pool.max_threads_created = 1;
        pool.idle_walks = 2;
    }
    ~PoolWithoutThreads() { buffer::reset_workers_after_fork(); }
    /// Takes the next file from the queue, as a thread does; nullptr if the queue is empty.
    static File* taken() {
        File* file = buffer::next_file();
        if (file != nullptr) {
            file->queued_pool_generation = 0;
        }
        return file;
    }
};

}  // namespace

TEST_CASE("workers_start_with_first_dirty_byte_and_get_full_pages") {
    {
        const Folder folder;
        use("*:size=4k:count=8,%process:age=600");
        const PoolWithoutThreads nobody;
        const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
        File* const file = &file_of(fd);
        std::string text(4096, 'x');
        REQUIRE(write_at(fd, text.data(), 100, 0) == 100);
        CHECK(PoolWithoutThreads::taken() == nullptr);  // nobody is in a hurry,
        CHECK(pool.idle_walks == 0);                    // but somebody goes round
        REQUIRE(write_at(fd, text.data(), 100, 100) == 100);
        CHECK(PoolWithoutThreads::taken() == nullptr);
        REQUIRE(write_at(fd, text.data(), 3896, 200) == 3896);
        CHECK(PoolWithoutThreads::taken() == file);
        REQUIRE(write_at(fd, text.data(), 50, 4096) == 50);
        CHECK(PoolWithoutThreads::taken() == nullptr);
        REQUIRE(write_at(fd, text.data(), 4046, 4146) == 4046);
        CHECK(PoolWithoutThreads::taken() == file);
        CHECK(close_buffered(fd) == 0);
        PoolWithoutThreads::taken();
    }
}

TEST_CASE("child_has_a_separate_pool_and_inherits_the_parent_queue") {
    use(quiet);
    const PoolWithoutThreads nobody;
    const Held one(quiet);
    buffer::enqueue_file(file_of(one.fd));
    const std::uint32_t before = pool.generation;
    REQUIRE(file_of(one.fd).queued_pool_generation == before);
    buffer::reset_workers_after_fork();
    CHECK(pool.generation == before + 1);  // so it differs from the numbers of all ancestors' pools, and from 0
    CHECK(pool.running_threads == 0);
    pool.running_threads = pool.max_threads_created = 1;
    CHECK(PoolWithoutThreads::taken() == nullptr);
    buffer::enqueue_file(file_of(one.fd));
    CHECK(PoolWithoutThreads::taken() == &file_of(one.fd));
}

TEST_CASE("walk_finds_dirty_data_and_reports_activity") {
    use(quiet);
    const PoolWithoutThreads nobody;
    {
        const Held one(quiet);
        CHECK(PoolWithoutThreads::taken() == nullptr);
        CHECK(buffer::walk_over_files());
        CHECK(PoolWithoutThreads::taken() == &file_of(one.fd));
        buffer::flush_to_kernel(one.fd);
        CHECK(buffer::walk_over_files());
        CHECK(PoolWithoutThreads::taken() == nullptr);
        buffer::release_file_of_descriptor(one.fd, "test");
        CHECK_FALSE(buffer::walk_over_files());
    }
    CHECK_FALSE(buffer::walk_over_files());
}

TEST_CASE("walk_releases_file_appended_elsewhere") {
    use(quiet);
    const PoolWithoutThreads nobody;
    const Held one(quiet);
    buffer::walk_over_files();
    CHECK(mode_of(one.fd) == Mode::Active);
    file_of(one.fd).append.has_foreign_growth = true;
    buffer::walk_over_files();
    CHECK(mode_of(one.fd) == Mode::Released);
    CHECK(why(one.fd) == buffer::why_grown);
    CHECK(contents(one.path) == one.text);
}

TEST_CASE("queue_keeps_order_holds_256_and_each_file_once") {
    use(quiet);
    const PoolWithoutThreads nobody;
    std::vector<std::unique_ptr<File>> files;
    for (int i = 0; i < 257; ++i) {
        files.push_back(std::make_unique<File>());
    }
    pool.first = 200;  // the list goes round
    pool.idle_walks = 2;
    for (const auto& file : files) {
        buffer::enqueue_file(*file);
        buffer::enqueue_file(*file);
    }
    CHECK(pool.count == 256);
    CHECK(pool.idle_walks == 0);  // there is something to do
    CHECK(files[255]->queued_pool_generation == pool.generation);
    CHECK(files[256]->queued_pool_generation == 0);  // the walk over all files will find it
    for (int i = 0; i < 256; ++i) {
        REQUIRE(PoolWithoutThreads::taken() == files[static_cast<std::size_t>(i)].get());
    }
    CHECK(PoolWithoutThreads::taken() == nullptr);
    CHECK(pool.first == 200);
}

TEST_CASE("walk_is_due_after_nap_and_calm_walks_count") {
    use(quiet);
    const PoolWithoutThreads nobody;
    pool.idle_sleep_ns = 3'600'000'000'000;
    pool.last_walk_ns = 0;
    CHECK(buffer::is_walk_due() == (system::now_ns() >= 3'600'000'000'000));
    pool.idle_sleep_ns = 0;
    const std::uint64_t before = system::now_ns();
    CHECK(buffer::is_walk_due());
    CHECK(pool.last_walk_ns >= before);
    pool.idle_sleep_ns = 3'600'000'000'000;
    CHECK_FALSE(buffer::is_walk_due());
    pool.idle_walks = 0;
    buffer::count_idle_walk(false);
    buffer::count_idle_walk(false);
    CHECK(pool.idle_walks == 2);
    buffer::count_idle_walk(true);
    CHECK(pool.idle_walks == 0);
    buffer::count_idle_walk(false);
    errno = 77;
    buffer::ensure_worker_threads();
    CHECK(pool.idle_walks == 0);
    CHECK(errno == 77);
}

TEST_CASE("thread_count_follows_setting_and_nap_is_bounded") {
    const auto nap = [](const char* params, std::uint32_t& possible) {
        stop_pool();
        const Folder folder;
        use(params);
        const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
        char byte = 'x';
        REQUIRE(write_at(fd, &byte, 1, 0) == 1);
        std::int64_t nap_ns = 0;
        {
            const system::LockGuard lock_guard(pool.lock);
            possible = pool.max_threads_created;
            nap_ns = pool.idle_sleep_ns;
        }
        CHECK(close_buffered(fd) == 0);
        stop_pool();
        return nap_ns;
    };
    std::uint32_t possible = 0;
    CHECK(nap("*:size=4k:count=4,%process:age=600:threads=3", possible) == 1'000'000'000);
    CHECK(possible == 3);
    CHECK(nap("*:size=4k:count=4,%process:age=2:threads=3", possible) == 500'000'000);
    CHECK(possible == 3);
    stop_pool();
}
