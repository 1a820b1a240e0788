// SPDX-License-Identifier: Apache-2.0
// Backend mmap: a page that cannot be had is an error number, not the end of the process.
#include "../in_child.hpp"
#include "../temporary_folder.hpp"
#include "backends/fault_guard.hpp"
#include "task_channel.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace sonde::backends {
extern const Backend mmap_backend;
}

using sonde::backends::mmap_backend;
using sonde::tests::in_child;
using sonde::tests::size_of;
using sonde::tests::TaskChannel;
using sonde::tests::TemporaryFolder;
using sonde::tests::to_read;
using sonde::tests::to_write;

namespace {

constexpr std::uint32_t block = 64U << 10U;

}  // namespace

TEST_CASE("mmap: written data is visible to channel and read(2)") {
    const TemporaryFolder folder;
    const std::string path = folder / "data";
    const TaskChannel channel(mmap_backend, {}, block);
    REQUIRE(channel->open(0, to_write(path, 4 * block)) == 0);
    CHECK(size_of(path) == 4 * block);
    for (std::uint32_t i = 0; i < 4; ++i) {
        channel.fill(static_cast<char>('a' + i));
        CHECK(channel.write(i * block, block) == block);
    }
    CHECK(channel->fsync(0) == 0);
    CHECK(channel->close(0) == 0);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    CHECK(channel.read(2 * block, block) == block);
    CHECK(channel.text(block) == std::string(block, 'c'));
    CHECK(channel->close(0) == 0);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string content(4 * block, '\0');
    CHECK(::read(descriptor, content.data(), content.size()) == 4 * block);
    ::close(descriptor);
    CHECK(content[0] == 'a');
    CHECK(content[4 * block - 1] == 'd');
}

TEST_CASE("mmap: reads end where the file ends") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(block + 10, 'x'));
    const TaskChannel channel(mmap_backend, {}, block);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    CHECK(channel.read(block, block) == 10);
    CHECK(channel.read(block + 10, block) == 0);
    CHECK(channel.read(100ULL * block, block) == 0);
}

TEST_CASE("mmap: empty file reads as ended until it grows") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", "");
    const TaskChannel channel(mmap_backend, {}, block);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    CHECK(channel.read(0, block) == 0);
    folder.write("data", std::string(100, 'y'));
    CHECK(channel.read(0, block) == 100);
    CHECK(channel.text(100) == std::string(100, 'y'));
}

TEST_CASE("mmap: file grows exactly to the written size") {
    const TemporaryFolder folder;
    const std::string path = folder / "data";
    const TaskChannel channel(mmap_backend, {}, block);
    REQUIRE(channel->open(0, to_write(path)) == 0);
    channel.fill('z');
    CHECK(channel.write(0, 100) == 100);
    CHECK(size_of(path) == 100);
    CHECK(channel.write(3 * block, block) == block);
    CHECK(size_of(path) == 4 * block);
    CHECK(channel.write(block, block) == block);
    CHECK(size_of(path) == 4 * block);
}

TEST_CASE("mmap: two channels extending one file keep each other's data") {
    const TemporaryFolder folder;
    const std::string path = folder / "data";
    const auto writer = [&](std::uint32_t first) {
        const TaskChannel channel(mmap_backend, {}, 4096);
        bool good = channel->open(0, to_write(path)) == 0;
        channel.fill(static_cast<char>('a' + first));
        for (std::uint32_t i = first; i < 400; i += 2) {
            good = channel.write(i * 4096ULL, 4096) == 4096 && good;
        }
        return good;
    };
    bool first = false;
    std::thread other([&] { first = writer(0); });
    const bool second = writer(1);
    other.join();
    CHECK(first);
    CHECK(second);
    const TaskChannel channel(mmap_backend, {}, 4096);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    for (std::uint32_t i = 0; i < 400; ++i) {
        REQUIRE(channel.read(i * 4096ULL, 4096) == 4096);
        REQUIRE(channel.text(1) == std::string(1, static_cast<char>('a' + i % 2)));
    }
}

TEST_CASE("mmap: externally truncated file gives EIO") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", std::string(4 * block, 'x'));
    const TaskChannel channel(mmap_backend, {}, block);
    auto request = to_write(path, 4 * block);
    REQUIRE(channel->open(0, request) == 0);
    REQUIRE(::truncate(path.c_str(), 4096) == 0);
    CHECK(channel.read(2 * block, block) == -EIO);
    CHECK(channel.write(2 * block, block) == -EIO);
    CHECK(channel.read(0, 4096) == 4096);
}

TEST_CASE("mmap: simultaneous faults of threads are independent") {
    const TemporaryFolder folder;
    const auto fail_often = [&](int number, bool& good) {
        const std::string path = folder.write("data" + std::to_string(number), std::string(4 * block, 'x'));
        const TaskChannel channel(mmap_backend, {}, block);
        good = channel->open(0, to_write(path, 4 * block)) == 0 && ::truncate(path.c_str(), 4096) == 0;
        for (int i = 0; i < 500; ++i) {
            good = good && channel.read(2 * block, block) == -EIO && channel.read(0, 4096) == 4096;
        }
    };
    bool good[4] = {};
    {
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back(fail_often, i, std::ref(good[i]));
        }
        for (auto& thread : threads) {
            thread.join();
        }
    }
    CHECK((good[0] && good[1] && good[2] && good[3]));
}

TEST_CASE("mmap: a hole on a full file system is ENOSPC") {
    if (!sonde::tests::is_root()) {
        MESSAGE("skipped: mounting a small file system needs root");
        return;
    }
    const TemporaryFolder folder;
    const std::string result = in_child([&]() -> std::string {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
            return "skipped";
        }
        const TaskChannel channel(mmap_backend, {}, block);
        if (channel->open(0, to_write(folder / "data", 64 * block)) != 0) {
            return "not opened";
        }
        for (std::uint32_t i = 0; i < 64; ++i) {
            const std::int64_t moved = channel.write(i * block, block);
            if (moved != block) {
                return std::to_string(moved) + (i >= 12 && i <= 16 ? " in time" : " at the wrong place");
            }
        }
        return "no error";
    });
    if (result == "skipped") {
        MESSAGE("skipped: mount namespaces are not allowed here");
        return;
    }
    CHECK(result == std::to_string(-ENOSPC) + " in time");
}

TEST_CASE("foreign SIGBUS still ends the process") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", "x");
    const std::string end = in_child([&] {
        sonde::backends::install_fault_guard();
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        const auto* base = static_cast<volatile char*>(::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, descriptor, 0));
        return std::string(1, base[4096]);
    });
    // By the signal; a sanitizer reports it first and exits.
    CHECK(end.rfind("died ", 0) == 0);
}

TEST_CASE("mmap: fsync per operation and errors of bad files") {
    const TemporaryFolder folder;
    sonde::plan::Io io;
    io.fsync = sonde::plan::Fsync::per_op;
    const std::string path = folder / "data";
    const TaskChannel channel(mmap_backend, io, block);
    REQUIRE(channel->open(0, to_write(path, 4 * block)) == 0);
    CHECK(channel.write(4096 + 7, 100) == 100);
    CHECK(channel->close(0) == 0);
    CHECK(channel->close(0) == 0);
    REQUIRE(channel->open(0, to_read(path)) == 0);
    CHECK(channel.write(100ULL * block, block) == -EBADF);
    CHECK(channel->open(0, to_read(folder / "absent")) == -ENOENT);
}

TEST_CASE("mmap: unsupported options are rejected with a reason") {
    sonde::plan::Io io;
    io.direct = true;
    CHECK_THROWS_WITH_AS(TaskChannel(mmap_backend, io, block), doctest::Contains("direct I/O"), std::runtime_error);
    io.direct = false;
    io.sync_flag = sonde::plan::SyncFlag::o_dsync;
    CHECK_THROWS_WITH_AS(TaskChannel(mmap_backend, io, block), doctest::Contains("O_DSYNC"), std::runtime_error);
    CHECK(mmap_backend.check_availability("").is_available);
    const TemporaryFolder folder;
    CHECK(mmap_backend.check_availability(folder.path()).is_available);
    CHECK_FALSE(mmap_backend.check_availability("/proc").is_available);
    CHECK(mmap_backend.check_availability("/proc").reason.find("/proc") != std::string::npos);
    CHECK(std::filesystem::is_empty(folder.path()));
}
