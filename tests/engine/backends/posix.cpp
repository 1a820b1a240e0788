// SPDX-License-Identifier: Apache-2.0
// pread and pwrite, through the channel and past it.
#include "../temporary_folder.hpp"
#include "task_channel.hpp"

#include <doctest/doctest.h>
#include <unistd.h>
#include <array>
#include <cerrno>

using sonde::backends::SyscallFile;
using sonde::tests::TaskChannel;
using sonde::tests::TemporaryFolder;
using sonde::tests::to_read;
using sonde::tests::to_write;

namespace {

const sonde::backends::Backend& posix() {
    return *sonde::backends::find_backend("posix");
}

}  // namespace

TEST_CASE("bare calls and the posix channel access the same file") {
    const TemporaryFolder folder;
    const TaskChannel channel(posix(), {}, 100);
    REQUIRE(channel->open(0, to_write(folder.path() + "/data")) == 0);
    channel.fill('a');
    CHECK(channel.write(0, 100) == 100);
    const SyscallFile file = channel->syscall_file(0);
    REQUIRE(file);
    std::array<std::byte, 100> content{};
    CHECK(file.transfer_once<false>(content.data(), 60, 50) == 50);  // the end of the file
    CHECK(content[0] == std::byte{'a'});
    content.fill(std::byte{'b'});
    CHECK(file.transfer_once<true>(content.data(), 7, 100) == 7);
    CHECK(channel.read(90, 100) == 17);
    CHECK(channel.text(17) == "aaaaaaaaaabbbbbbb");
    CHECK(channel->close(0) == 0);
    CHECK(!channel->syscall_file(0));
}

TEST_CASE("channels with several calls per operation have no bare call") {
    const TemporaryFolder folder;
    sonde::plan::Io durable;
    durable.fsync = sonde::plan::Fsync::per_op;
    const TaskChannel each(posix(), durable, 100);
    REQUIRE(each->open(0, to_write(folder.path() + "/data")) == 0);
    CHECK(!each->syscall_file(0));
    CHECK(each.write(0, 100) == 100);
    const TaskChannel none(*sonde::backends::find_backend("null"), {}, 100);
    REQUIRE(none->open(0, to_write(folder.path() + "/other")) == 0);
    CHECK(!none->syscall_file(0));
}

TEST_CASE("interrupted call is repeated, failed call reports why") {
    const TemporaryFolder folder;
    const TaskChannel channel(posix(), {}, 100);
    const std::string path = folder.write("data", "content");
    REQUIRE(channel->open(0, to_read(path)) == 0);
    std::array<std::byte, 100> content{};
    errno = EINTR;
    CHECK(channel->syscall_file(0).retry_if_interrupted<false>(-1, content.data(), 100, 0) == 7);
    errno = EINTR;
    CHECK(channel->syscall_file(0).retry_if_interrupted<true>(-1, content.data(), 100, 0) ==
          -EBADF);  // open for reading only
    errno = EIO;
    CHECK(channel->syscall_file(0).retry_if_interrupted<false>(-1, content.data(), 100, 0) == -EIO);
    CHECK(channel.write(0, 10) == -EBADF);
}
