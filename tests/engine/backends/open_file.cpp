// SPDX-License-Identifier: Apache-2.0
// Opening and preallocating are the same for all backends that use file descriptors.
#include "backends/open_file.hpp"

#include "../temporary_folder.hpp"
#include "task_channel.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <limits>

using sonde::backends::open_file;
using sonde::backends::open_flags;
using sonde::backends::OpenRequest;
using sonde::backends::preallocate;
using sonde::plan::Io;
using sonde::plan::Preallocate;
using sonde::tests::allocated;
using sonde::tests::size_of;
using sonde::tests::TemporaryFolder;
using sonde::tests::to_read;
using sonde::tests::to_write;

namespace {

constexpr std::uint64_t mebibyte = 1U << 20U;

int open_with(const std::string& path, Preallocate kind, std::uint64_t bytes) {
    Io io;
    io.preallocate = kind;
    return open_file(io, to_write(path, bytes));
}

}  // namespace

TEST_CASE("plan members become flags of open(2)") {
    Io io;
    CHECK(open_flags(io, to_read("x")) == (O_RDONLY | O_CLOEXEC));
    OpenRequest request = to_write("x");
    CHECK(open_flags(io, request) == (O_RDWR | O_CREAT | O_CLOEXEC));
    request.read = false;
    request.truncate = true;
    CHECK(open_flags(io, request) == (O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC));
    request.exclusive = true;
    io.direct = true;
    io.sync_flag = sonde::plan::SyncFlag::o_dsync;
    CHECK(open_flags(io, request) == (O_WRONLY | O_CREAT | O_TRUNC | O_EXCL | O_DIRECT | O_DSYNC | O_CLOEXEC));
    io.sync_flag = sonde::plan::SyncFlag::o_sync;
    CHECK((open_flags(io, request) & O_SYNC) == O_SYNC);
}

TEST_CASE("a file opened to be read is never truncated or preallocated") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", "content");
    Io io;
    io.preallocate = Preallocate::fallocate;
    io.sync_flag = sonde::plan::SyncFlag::o_sync;
    OpenRequest request = to_read(path);
    request.truncate = true;
    request.size = mebibyte;
    const int descriptor = open_file(io, request);
    REQUIRE(descriptor >= 0);
    ::close(descriptor);
    CHECK(size_of(path) == 7);
}

TEST_CASE("open_file returns errors of open(2) unchanged") {
    const TemporaryFolder folder;
    CHECK(open_file({}, to_read(folder / "absent")) == -ENOENT);
    CHECK(open_file({}, to_write(folder / "no folder/x")) == -ENOENT);
    OpenRequest again = to_write(folder.write("there", "x"));
    again.exclusive = true;
    CHECK(open_file({}, again) == -EEXIST);
    CHECK(open_file({}, to_write(folder.path())) == -EISDIR);
}

TEST_CASE("truncate preallocation sets size and never shrinks a file") {
    const TemporaryFolder folder;
    const std::string path = folder / "data";
    ::close(open_with(path, Preallocate::truncate, 8 * mebibyte));
    CHECK(size_of(path) == 8 * mebibyte);
    CHECK(allocated(path) < mebibyte);
    ::close(open_with(path, Preallocate::truncate, mebibyte));
    CHECK(size_of(path) == 8 * mebibyte);
}

TEST_CASE("preallocate fallocate reserves blocks and sets the size") {
    const TemporaryFolder folder;
    const std::string path = folder / "data";
    const int descriptor = open_with(path, Preallocate::fallocate, 8 * mebibyte);
    if (descriptor == -EOPNOTSUPP) {
        MESSAGE("skipped: no fallocate on this file system");
        return;
    }
    ::close(descriptor);
    CHECK(size_of(path) == 8 * mebibyte);
    CHECK(allocated(path) >= 8 * mebibyte);
}

TEST_CASE("preallocate unwritten reserves blocks beyond the size") {
    const TemporaryFolder folder;
    const std::string path = folder / "data";
    const int descriptor = open_with(path, Preallocate::unwritten, 8 * mebibyte);
    if (descriptor == -EOPNOTSUPP) {
        MESSAGE("skipped: no fallocate on this file system");
        return;
    }
    ::close(descriptor);
    CHECK(size_of(path) == 0);
    CHECK(allocated(path) >= 8 * mebibyte);
}

TEST_CASE("impossible preallocation is an error, none is not") {
    const TemporaryFolder folder;
    const std::string path = folder.write("data", "x");
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    CHECK(preallocate(descriptor, Preallocate::none, mebibyte) == 0);
    CHECK(preallocate(descriptor, Preallocate::fallocate, 0) == 0);
    CHECK(preallocate(descriptor, Preallocate::truncate, std::numeric_limits<std::uint64_t>::max()) == -EFBIG);
    ::close(descriptor);
    CHECK(preallocate(descriptor, Preallocate::truncate, mebibyte) == -EBADF);
    const int full = ::open("/dev/full", O_RDWR | O_CLOEXEC);
    CHECK(preallocate(full, Preallocate::fallocate, mebibyte) < 0);
    ::close(full);
}

TEST_CASE("failed preallocation closes the file and reports the error") {
    const TemporaryFolder folder;
    // The limit of this process, not the end of the disk: a disk that is full for a moment harms whoever else writes.
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit small = before;
    small.rlim_cur = mebibyte;
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const int next = ::dup(STDIN_FILENO);
    ::close(next);
    const int descriptor = open_with(folder / "data", Preallocate::fallocate, 2 * mebibyte);
    const int after = ::dup(STDIN_FILENO);
    ::close(after);
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK((descriptor == -EFBIG || descriptor == -EOPNOTSUPP));
    CHECK(after == next);
}
