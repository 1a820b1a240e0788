// SPDX-License-Identifier: Apache-2.0
// Names whose files come and go before anything is gained.
#include "buffer/brief_lives.hpp"
#include "buffer/descriptors.hpp"

#include "held.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string>

using namespace under_test;  // NOLINT
using sonde::buffer::Mode;

namespace {

constexpr const char* eager_only = "*:size=64k:count=4:eager,%process:age=600:threads=0";

/// As a call of the program does it.
int open_by_program(const std::string& path, int flags = O_RDWR | O_CREAT) {
    const int fd = open(path.c_str(), flags, 0644);
    buffer::Seen seen;
    seen.by_the_program = true;
    buffer::adopt(fd, flags, path.c_str(), nullptr, nullptr, &seen);
    REQUIRE(buffer::watched(fd));
    return fd;
}

void live_in_vain(const std::string& path, int times) {
    for (int life = 0; life < times; ++life) {
        CHECK(close_buffered(open_by_program(path)) == 0);
    }
}

/// Openings of the name that are left alone before one is looked at.
int left_alone(const std::string& path, int most) {
    int openings = 0;
    for (bool alone = true; alone && openings <= most;) {
        const int fd = open_by_program(path);
        alone = mode_of(fd) == Mode::Through;
        openings += alone ? 1 : 0;
        CHECK(why(fd) == (alone ? buffer::why_brief : ""));
        CHECK(close_buffered(fd) == 0);
    }
    return openings;
}

/// One whose calls are saved on storage that is slow.
void live_well(const std::string& path) {
    const int fd = open_by_program(path);
    REQUIRE(ftruncate(fd, 100) == 0);
    file_of(fd).size = 100;
    slow_storage = true;
    char byte = 0;
    for (int at = 0; at < 10; ++at) {
        CHECK(read_at(fd, &byte, 1, at) == 1);
    }
    slow_storage = false;
    CHECK(file_of(fd).statistics.read.hits == 9);
    CHECK(close_buffered(fd) == 0);
}

}  // namespace

TEST_CASE("after four lives in vain a name is left alone for 64 openings, then for twice as many") {
    use(eager_only);
    const Folder folder;
    const std::string path = folder.path + "/journal";
    for (int life = 0; life < 4; ++life) {
        const int fd = open_by_program(path);
        CHECK(mode_of(fd) == Mode::Active);
        CHECK(close_buffered(fd) == 0);
    }
    CHECK(left_alone(path, 1000) == 64);  // the look that ended it was in vain
    CHECK(left_alone(path, 1000) == 128);
    CHECK(left_alone(path, 1000) == 256);
    const int other = open_by_program(folder.path + "/other");
    CHECK(mode_of(other) == Mode::Active);
    CHECK(close_buffered(other) == 0);
}

TEST_CASE("a life that gained something makes the name as good as a new one") {
    use(eager_only);
    const Folder folder;
    const std::string path = folder.path + "/status";
    live_in_vain(path, 3);
    live_well(path);
    live_in_vain(path, 3);
    live_well(path);
    live_in_vain(path, 4);
    CHECK(left_alone(path, 1000) == 64);
    live_in_vain(path, 128);  // the rest after that look
    live_well(path);
    live_in_vain(path, 4);
    CHECK(left_alone(path, 1000) == 64);
}

TEST_CASE("what is left alone is in the file at once, known to other processes, and buffered by nobody meanwhile") {
    use(eager_only);
    const Folder folder;
    const std::string path = folder.path + "/journal";
    live_in_vain(path, 4);
    const int fd = open_by_program(path);
    std::string text = "begin";
    CHECK(write_at(fd, text.data(), 5, 0) == 5);
    CHECK(contents(path) == "begin");
    const std::string name = folder.path + "/another name";
    REQUIRE(link(path.c_str(), name.c_str()) == 0);
    const int again = open_by_program(name);
    CHECK(mode_of(again) == Mode::Through);
    const bool others_are_seen = access("/dev/shm", W_OK) == 0;
    CHECK(in_child([&] {  // who comes later learns that it is in use
        buffer::File one{};
        one.device = file_of(fd).device;
        one.inode = file_of(fd).inode;
        return !others_are_seen || !buffer::claim(one, true);
    }));
    CHECK(close_buffered(again) == 0);
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("where a setting wants more than saved calls, or a report, no name is left alone") {
    for (const char* const option : {"lazyclose", "auto", "direct", "ignoreflush", "verbose"}) {
        CAPTURE(option);
        use((std::string("*:size=64k:eager:") + option + ",%process:age=600:threads=0").c_str());
        const Folder folder;
        const std::string path = folder.path + "/journal";
        for (int life = 0; life < 8; ++life) {
            const int fd = open_by_program(path);
            CHECK(mode_of(fd) == Mode::Active);
            REQUIRE(unlink(path.c_str()) == 0);  // nothing is kept for another opening
            CHECK(close_buffered(fd) == 0);
        }
    }
}

TEST_CASE("what another library does with a file of the name does not count, and is not left alone") {
    use(eager_only);
    const Folder folder;
    const std::string path = folder.path + "/data";
    for (int life = 0; life < 8; ++life) {
        CHECK(close_buffered(open_buffered(path, O_RDWR | O_CREAT)) == 0);
    }
    live_in_vain(path, 4);
    const int fd = open_buffered(path, O_RDWR);
    CHECK(mode_of(fd) == Mode::Active);
    CHECK(close_buffered(fd) == 0);
    CHECK(left_alone(path, 1000) == 64);
}
