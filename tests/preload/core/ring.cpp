// SPDX-License-Identifier: Apache-2.0
#include "system/ring.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

using sonde::system::Ring;

TEST_CASE("a ring that the kernel refuses says why, and leaves nothing open") {
    long (*const usual)(unsigned, void*) = sonde::system::ring_setup;
    for (const int error : {EPERM, ENOSYS, ENOMEM}) {
        static int wanted;
        wanted = error;
        sonde::system::ring_setup = [](unsigned, void*) -> long { return -wanted; };
        Ring ring;
        CHECK(ring.open(500) == -error);
        CHECK_FALSE(ring.is_open());
    }
    // A kernel from before what we need: a descriptor, but no features.
    sonde::system::ring_setup = [](unsigned, void*) -> long { return dup(1); };
    Ring old;
    CHECK(old.open(500) == -EOPNOTSUPP);
    CHECK_FALSE(old.is_open());
    CHECK(lseek(500, 0, SEEK_CUR) == -1);
    CHECK(errno == EBADF);
    sonde::system::ring_setup = usual;
}

TEST_CASE("what is written through a ring is read back through it, in pieces and past the end of the file") {
    Ring ring;
    const int error = ring.open(500);
    if (error != 0) {
        MESSAGE("there is no io_uring here: error " << -error);
        return;
    }
    FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    const int fd = fileno(file);
    constexpr unsigned pieces = 40;
    std::vector<std::string> sent;
    for (unsigned i = 0; i < pieces; ++i) {
        sent.push_back(std::string(1000, static_cast<char>('A' + i)));
    }
    for (const bool write : {true, false}) {
        std::vector<std::string> got(pieces, std::string(1000, '.'));
        for (unsigned i = 0; i < pieces; ++i) {
            ring.transfer(write, fd, write ? sent[i].data() : got[i].data(), 1000, i * 1000LL, i);
        }
        std::vector<bool> seen(pieces);
        for (unsigned left = pieces; left > 0;) {
            ring.enter(1'000'000'000);
            std::uint64_t id = 0;
            std::int32_t bytes = 0;
            while (ring.result(id, bytes)) {
                REQUIRE(id < pieces);
                CHECK_FALSE(seen[id]);
                seen[id] = true;
                CHECK(bytes == 1000);
                --left;
            }
        }
        CHECK((write || got == sent));
    }
    std::string rest(1000, '.');
    ring.transfer(false, fd, rest.data(), 1000, pieces * 1000LL - 10, 7);
    ring.enter(1'000'000'000);
    std::uint64_t id = 0;
    std::int32_t bytes = 0;
    REQUIRE(ring.result(id, bytes));
    CHECK(bytes == 10);
    CHECK_FALSE(ring.result(id, bytes));
    std::fclose(file);
    const int descriptor = ring.descriptor();
    ring.forget();
    CHECK(lseek(descriptor, 0, SEEK_CUR) == -1);
}
