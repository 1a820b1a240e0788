// SPDX-License-Identifier: Apache-2.0
// Tests which files get a second descriptor with O_DIRECT, and what happens when descriptors are scarce.
#include "files/direct_descriptors.hpp"

#include "dirty_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

using namespace under_test;

namespace {

constexpr const char* directly = "*:size=4k:count=4:direct,%process:age=600";

/// Returns whether files of this folder can be opened with O_DIRECT.
bool can_be_direct(const Folder& folder) {
    const int fd = open((folder.path + "/probe").c_str(), O_CREAT | O_RDWR | O_DIRECT, 0644);
    if (fd >= 0) {
        close(fd);
    } else {
        MESSAGE("this file system has no O_DIRECT");
    }
    return fd >= 0;
}

}  // namespace

TEST_CASE("direct_descriptor_per_direction_lives_until_close") {
    const Folder folder;
    if (!can_be_direct(folder)) {
        return;
    }
    use(directly);
    const std::string path = folder.path + "/data";
    const int fd = open_buffered(path, O_RDWR | O_CREAT);
    const buffer::FileDescriptors& ends = file_of(fd).descriptors;
    const int in = ends.direct_read_fd;
    const int out = ends.direct_write_fd;
    for (const auto& [mine, access] : {std::pair{in, O_RDONLY}, {out, O_WRONLY}}) {
        REQUIRE(mine >= 0);
        CHECK(buffer::is_own_descriptor(mine));
        CHECK((fcntl(mine, F_GETFL) & (O_DIRECT | O_ACCMODE)) == (O_DIRECT | access));
    }
    CHECK(ends.direct_alignment == 4096);
    CHECK(close_buffered(fd) == 0);
    for (const int own_descriptor : {in, out}) {
        CHECK_FALSE(buffer::is_own_descriptor(own_descriptor));
        CHECK(fcntl(own_descriptor, F_GETFD) == -1);
    }
    const int reader = open_buffered(path, O_RDONLY);
    CHECK(file_of(reader).descriptors.direct_read_fd >= 0);
    CHECK(file_of(reader).descriptors.direct_write_fd == -1);
    CHECK(close_buffered(reader) == 0);
    const int writer = open_buffered(path, O_WRONLY);
    CHECK(file_of(writer).descriptors.direct_read_fd == -1);
    const int into = file_of(writer).descriptors.direct_write_fd;
    CHECK(into >= 0);
    const int both = open_buffered(path, O_RDWR);
    CHECK(file_of(both).descriptors.direct_read_fd >= 0);
    CHECK(file_of(both).descriptors.direct_write_fd == into);  // one for each way is enough
    CHECK(close_buffered(both) == 0);
    CHECK(close_buffered(writer) == 0);
    use(quiet);
    const int plain = open_buffered(path, O_RDWR);
    CHECK(file_of(plain).descriptors.direct_read_fd == -1);
    CHECK(close_buffered(plain) == 0);
}

TEST_CASE("direct_descriptors_use_one_sixteenth_of_limit") {
    const Folder folder;
    if (!can_be_direct(folder)) {
        return;
    }
    use(directly);
    const auto is_direct = [&](int number) {
        const int fd = open_buffered(folder.path + "/" + std::to_string(number), O_RDWR | O_CREAT);
        return file_of(fd).descriptors.direct_read_fd >= 0;
    };
    const rlimit few{64, 64};
    CHECK(in_child([&] {
        setrlimit(RLIMIT_NOFILE, &few);
        return is_direct(1) && is_direct(2) && !is_direct(3);  // two of the four for each
    }));
    CHECK(in_child([&] {
        setrlimit(RLIMIT_NOFILE, &few);
        const std::string path = folder.path + "/high";
        const int fd = dup2(open(path.c_str(), O_RDWR | O_CREAT, 0644), 32);
        buffer::adopt_descriptor({.fd = fd, .flags = O_RDWR, .path = path.c_str()});
        return file_of(fd).descriptors.direct_read_fd == -1;
    }));
}
