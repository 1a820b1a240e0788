// SPDX-License-Identifier: Apache-2.0
// Backend io_uring: many operations in flight, each ended exactly once with its own result.
#include "../in_child.hpp"
#include "../temporary_folder.hpp"
#include "records/environment.hpp"
#include "records/file_system.hpp"
#include "task_channel.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <latch>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace sonde::backends {
extern const Backend io_uring_backend;
}

using sonde::backends::Completion;
using sonde::backends::io_uring_backend;
using sonde::plan::Io;
using sonde::tests::in_child;
using sonde::tests::TaskChannel;
using sonde::tests::TemporaryFolder;
using sonde::tests::to_read;
using sonde::tests::to_write;

namespace {

constexpr std::uint32_t block = 4096;

Io queue(int depth) {
    Io io;
    io.queue_depth = depth;
    return io;
}

bool absent() {
    const auto answer = io_uring_backend.check_availability("");
    if (!answer.is_available) {
        MESSAGE("skipped: " << answer.reason);
    }
    return !answer.is_available;
}

char content_of(std::uint32_t index) {
    return static_cast<char>('A' + index % 50);
}

/// Moves `count` blocks in a random order with all slots busy; true when each ended once and in full.
bool move_all(const TaskChannel& channel, bool write, std::uint32_t count, std::uint32_t depth) {
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    std::vector<std::uint32_t> in_slot(depth, count);
    std::vector<std::uint32_t> free;
    for (std::uint32_t slot = 0; slot < depth; ++slot) {
        free.push_back(slot);
    }
    std::vector<Completion> done(depth);
    bool good = true;
    std::uint32_t ended = 0;
    for (std::uint32_t next = 0; ended < count;) {
        while (next < count && !free.empty()) {
            const std::uint32_t slot = free.back();
            if (write) {
                channel.fill(content_of(order[next]), slot);
            }
            if (!channel->submit(channel.operation(write, order[next] * std::uint64_t{block}, block, slot))) {
                return false;
            }
            in_slot[slot] = order[next++];
            free.pop_back();
        }
        const std::size_t got = channel->reap(done);
        good = good && got > 0;
        for (std::size_t i = 0; i < got; ++i) {
            const std::uint32_t slot = done[i].slot;
            good = good && done[i].result == block && in_slot[slot] < count;
            good = good && (write || channel.text(block, slot) == std::string(block, content_of(in_slot[slot])));
            in_slot[slot] = count;
            free.push_back(slot);
            ++ended;
        }
        if (got == 0) {
            return false;
        }
    }
    return good && channel->reap(done) == 0;
}

void round_trip(const TemporaryFolder& folder, const Io& io, std::uint32_t count) {
    const std::string path = folder / "data";
    const auto depth = static_cast<std::uint32_t>(io.queue_depth);
    const TaskChannel channel(io_uring_backend, io, block, 3);
    REQUIRE(channel->open(0, to_write(path, count * std::uint64_t{block})) == 0);
    CHECK(move_all(channel, true, count, depth));
    CHECK(channel->fsync(0) == 0);
    CHECK(channel->close(0) == 0);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    CHECK(move_all(channel, false, count, depth));
    CHECK(channel->close(0) == 0);
}

}  // namespace

TEST_CASE("io_uring: each operation of a deep queue completes once") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    for (const int depth : {1, 2, 7, 32}) {
        round_trip(folder, queue(depth), 300);
    }
    round_trip(folder, queue(4096), 5000);
}

TEST_CASE("io_uring: unregistered buffers and linked fsync work") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    Io io = queue(8);
    io.registered = false;
    round_trip(folder, io, 100);
    io.fsync = sonde::plan::Fsync::per_op;
    round_trip(folder, io, 40);
    io.registered = true;
    round_trip(folder, io, 40);
}

TEST_CASE("io_uring: thread of the kernel takes the operations") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    for (const int depth : {1, 2, 7, 32}) {
        Io io = queue(depth);
        io.sqpoll = true;
        round_trip(folder, io, 300);
        io.registered = false;
        io.fsync = sonde::plan::Fsync::per_op;
        round_trip(folder, io, 40);
    }
}

TEST_CASE("io_uring: polled completions arrive or name the remedy") {
    const TemporaryFolder folder;
    if (absent() || sonde::records::describe_file_system(folder.path()).direct_offset_align == 0) {
        MESSAGE("skipped: no direct I/O with known alignment here");
        return;
    }
    const std::string path = folder.write("data", std::string(block, 'x'));
    Io io = queue(2);
    io.direct = true;
    io.iopoll = true;
    const TaskChannel channel(io_uring_backend, io, block);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    const std::int64_t moved_bytes = channel.read(0, block);
    const std::string explanation = channel->last_error_text();
    CHECK((moved_bytes == block
               ? explanation.empty()
               : moved_bytes == -EOPNOTSUPP && explanation.find("leave out io.iopoll") != std::string::npos));
}

TEST_CASE("io_uring: direct I/O moves the same data") {
    const TemporaryFolder folder;
    if (absent() || sonde::records::describe_file_system(folder.path()).direct_offset_align == 0) {
        MESSAGE("skipped: no direct I/O with known alignment here");
        return;
    }
    Io io = queue(16);
    io.direct = true;
    round_trip(folder, io, 500);
}

TEST_CASE("io_uring: full queue refuses, empty queue returns nothing") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(8 * block, 'x'));
    const TaskChannel channel(io_uring_backend, queue(3), block);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    std::vector<Completion> done(8);
    CHECK(channel->reap(done) == 0);
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
        CHECK(channel->submit(channel.operation(false, slot * block, block, slot)));
    }
    CHECK_FALSE(channel->submit(channel.operation(false, 0, block, 0)));
    std::set<std::uint32_t> slots;
    while (slots.size() < 3) {
        // Room for one only: the others must not get lost.
        REQUIRE(channel->reap({done.data(), 1}) == 1);
        CHECK(done[0].result == block);
        slots.insert(done[0].slot);
    }
    CHECK(channel->reap(done) == 0);
}

TEST_CASE("io_uring: short reads, end of file and errors are results") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(block + 100, 'x'));
    const TaskChannel channel(io_uring_backend, queue(4), block);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    CHECK(channel.read(block, block) == 100);
    CHECK(channel.read(2 * block, block) == 0);
    CHECK(channel.read(0, block) == block);
    CHECK(channel.write(0, block) == -EBADF);
    CHECK(channel->close(0) == 0);
    CHECK(channel.read(0, block) == -EBADF);
    CHECK(channel->open(0, to_read(folder / "absent")) == -ENOENT);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    CHECK(channel.read(0, block) == block);
}

TEST_CASE("io_uring: failed write with linked fsync reports its error") {
    if (absent()) {
        return;
    }
    Io io = queue(2);
    io.fsync = sonde::plan::Fsync::per_op;
    const TaskChannel channel(io_uring_backend, io, block);
    REQUIRE(channel->open(0, to_write("/dev/full")) == 0);
    CHECK(channel.write(0, block) == -ENOSPC);
    CHECK(channel.write(0, block) == -ENOSPC);
}

TEST_CASE("io_uring: several files and one channel per thread work") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    // All rings are there until all are done: otherwise one may get the memory of another that is gone, which liburing
    // gives back by raw system calls, and a thread sanitizer that does not see those takes the two for one.
    std::latch all_done(3);
    const auto work = [&folder, &all_done](int number, bool& good) {
        const TaskChannel channel(io_uring_backend, queue(8), block, 2);
        const std::string name = "t" + std::to_string(number);
        good = channel->open(0, to_write(folder / (name + "a"), 0)) == 0 &&
               channel->open(1, to_write(folder / (name + "b"), 0)) == 0;
        std::vector<Completion> done(8);
        for (std::uint32_t slot = 0; slot < 8; ++slot) {
            channel.fill(static_cast<char>('a' + slot % 2), slot);
            good = good && channel->submit(channel.operation(true, slot / 2 * block, block, slot, slot % 2));
        }
        for (std::size_t ended = 0; good && ended < 8;) {
            const std::size_t got = channel->reap(done);
            good = got > 0;
            ended += got;
        }
        good = good && channel->transfer(channel.operation(false, block, block, 0, 1)) == block &&
               channel.text(2) == "bb" && channel->close(1) == 0 && channel->close(0) == 0;
        all_done.arrive_and_wait();
    };
    bool good[3] = {};
    {
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back(work, i, std::ref(good[i]));
        }
        for (auto& thread : threads) {
            thread.join();
        }
    }
    CHECK((good[0] && good[1] && good[2]));
}

TEST_CASE("io_uring: channel works in another thread than its creator") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(block, 'x'));
    const TaskChannel channel(io_uring_backend, queue(2), block);
    std::int64_t moved_bytes = 0;
    std::thread task([&] {
        if (channel->open(0, to_read(path)) == 0) {
            moved_bytes = channel.read(0, block);
            channel->close(0);
        }
    });
    task.join();
    CHECK(moved_bytes == block);
}

TEST_CASE("io_uring: without locked memory buffers stay unregistered") {
    if (absent()) {
        return;
    }
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(block, 'x'));
    if (sonde::tests::is_root() && ::chmod(folder.path().c_str(), 0755) != 0) {
        return;
    }
    const std::string result = in_child([&]() -> std::string {
        const rlimit none{0, 0};
        // Root's rights outdo the limit.
        if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (::geteuid() == 0 && ::setuid(65534) != 0)) {
            return "skipped";
        }
        try {
            const TaskChannel channel(io_uring_backend, queue(64), 64 * block);
            const int descriptor_or_error = channel->open(0, to_read(path));
            // The folders above may be closed to others: then reading is not what is tested.
            if (descriptor_or_error == 0 && channel.read(0, block) != block) {
                return "not read";
            }
            return channel->missing_features().empty() ? "no note" : channel->missing_features().front();
        } catch (const std::exception& failure) {
            return failure.what();
        }
    });
    CHECK((result == "skipped" || result.find("limit on locked memory") != std::string::npos));
}

TEST_CASE("io_uring: forbidden use names the cause and the remedy") {
    CHECK(in_child([] {
              return sonde::tests::forbid(SYS_io_uring_setup, EPERM) ? io_uring_backend.check_availability("").reason
                                                                     : "skipped";
          }).find("posix") != std::string::npos);
    const std::string no_kernel = in_child([] {
        return sonde::tests::forbid(SYS_io_uring_setup, ENOSYS) ? io_uring_backend.check_availability("").reason
                                                                : "skipped";
    });
    CHECK(no_kernel.find("Linux 5.6") != std::string::npos);
    CHECK(in_child([]() -> std::string {
              sonde::tests::forbid(SYS_io_uring_setup, EPERM);
              try {
                  const TaskChannel channel(io_uring_backend, queue(2), block);
                  return "made";
              } catch (const std::runtime_error&) {
                  return "refused";
              }
          }) == "refused");
}
