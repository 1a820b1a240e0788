// SPDX-License-Identifier: Apache-2.0
// Tests that appended data is buffered under a lease, or with option alone.
#include "buffered.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

using namespace under_test;

namespace {

/// Writes by a process without the library.
void append_from_outside(const std::string& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_APPEND);
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
}

}  // namespace

TEST_CASE("appends_reads_and_truncations_equal_plain_file") {
    const Folder folder;
    for (const char* params :
         {"*:size=512:count=3:alone", "*:size=8k:count=4:alone", "*:size=64k:count=2:alone,%process:threads=0"}) {
        CAPTURE(params);
        use(params);
        for (unsigned seed = 1; seed <= 5; ++seed) {
            std::mt19937 random(seed);
            const std::string path = folder.path + "/" + std::to_string(seed) + params[7];
            std::string truth = "from before";
            close(open(path.c_str(), O_CREAT | O_RDWR, 0644));
            append_from_outside(path, truth);
            int fd[3] = {open_buffered(path, O_RDWR | O_APPEND), open_buffered(path, O_WRONLY | O_APPEND),
                         open_buffered(path, O_RDONLY)};
            std::vector<char> data(70000);
            for (int step = 0; step < 1500; ++step) {
                const std::size_t bytes = 1 + random() % (random() % 16 == 0 ? 66000 : 700);
                const std::size_t position = random() % (truth.size() + 100);
                const auto kind = random() % 100;
                if (kind < 55) {
                    std::generate_n(data.begin(), bytes, [&] { return static_cast<char>(random()); });
                    const off64_t offset = kind < 30 ? buffer::current_offset : static_cast<off64_t>(position);
                    const buffer::IoPart part{data.data(), bytes};
                    const int descriptor = fd[random() % 2];
                    const ssize_t got = done(
                        buffer::write(descriptor, &part, 1, offset),
                        [](int to, void* from, std::size_t count, off64_t where) {
                            return where == buffer::current_offset ? ::write(to, from, count)
                                                                   : pwrite64(to, from, count, where);
                        },
                        descriptor, data.data(), bytes, offset);
                    REQUIRE(got == static_cast<ssize_t>(bytes));
                    truth.append(data.data(), bytes);
                } else if (kind < 90) {
                    const std::size_t there = position < truth.size() ? std::min(bytes, truth.size() - position) : 0;
                    REQUIRE(read_at(fd[random() % 2 * 2], data.data(), bytes, static_cast<off64_t>(position)) ==
                            static_cast<ssize_t>(there));
                    REQUIRE(std::memcmp(data.data(), truth.data() + std::min(position, truth.size()), there) == 0);
                } else if (kind < 92) {
                    const buffer::PassThrough around(fd[0]);
                    REQUIRE(ftruncate(fd[0], static_cast<off_t>(position)) == 0);
                    truth.resize(position);
                } else if (kind < 96) {
                    REQUIRE(buffer::flush_descriptor(fd[1]) == 0);
                    REQUIRE((contents(path) == truth));
                } else {
                    REQUIRE(close_buffered(fd[1]) == 0);
                    fd[1] = open_buffered(path, O_WRONLY | O_APPEND);
                }
                REQUIRE_FALSE(file_of(fd[0]).append.has_foreign_growth);
            }
            for (const int descriptor : fd) {
                REQUIRE(close_buffered(descriptor) == 0);
            }
            REQUIRE((contents(path) == truth));
        }
    }
    CHECK_FALSE(buffer::has_registered_descriptors());
}

TEST_CASE("small appended records become few calls") {
    const Folder folder;
    use("*:size=64k:count=4:alone");
    const int fd = open_buffered(folder.path + "/log", O_WRONLY | O_CREAT | O_APPEND);
    std::vector<char> record(100, 'r');
    for (int i = 0; i < 10000; ++i) {
        REQUIRE(write_at(fd, record.data(), record.size(), 0) == 100);
    }
    CHECK(file_of(fd).statistics.write.calls == 10000);
    CHECK(file_of(fd).statistics.write.storage_calls <= 1000000 / 65536 + 2);
    CHECK(close_buffered(fd) == 0);
    CHECK((contents(folder.path + "/log") == std::string(1000000, 'r')));
}

TEST_CASE("append_by_another_process_releases_file_and_keeps_order") {
    const Folder folder;
    for (const bool large : {false, true}) {
        use("*:size=4k:count=4:alone");
        const std::string path = folder.path + (large ? "/large" : "/small");
        const int fd = open_buffered(path, O_RDWR | O_CREAT | O_APPEND);
        std::string own_records;
        const auto write_mine = [&](std::size_t bytes, char sign) {
            std::string text(bytes, sign);
            REQUIRE(write_at(fd, text.data(), bytes, 0) == static_cast<ssize_t>(bytes));
            own_records += text;
        };
        for (char sign = 'a'; sign <= 'z'; ++sign) {
            write_mine(300, sign);
        }
        append_from_outside(path, std::string(77, '#'));
        write_mine(large ? 20000 : 300, 'A');
        CHECK(buffer::flush_descriptor(fd) == 0);
        CHECK(file_of(fd).mode.load() == buffer::Mode::Released);
        CHECK(std::string(file_of(fd).release_reason).find("alone says") != std::string::npos);
        write_mine(300, 'B');
        append_from_outside(path, std::string(23, '#'));
        write_mine(300, 'C');
        std::string seen(own_records.size() + 100, '.');
        CHECK(read_at(fd, seen.data(), seen.size(), 0) == static_cast<ssize_t>(seen.size()));
        CHECK((seen == contents(path)));
        CHECK(std::count(seen.begin(), seen.end(), '#') == 100);
        seen.erase(std::remove(seen.begin(), seen.end(), '#'), seen.end());
        CHECK((seen == own_records));
        CHECK(close_buffered(fd) == 0);
    }
}

TEST_CASE("mixing_append_and_plain_writes_ends_buffering") {
    const Folder folder;
    use("*:size=4k:count=4:alone");
    const std::string path = folder.path + "/mixed";
    std::string text(500, 'a');
    int fd = open_buffered(path, O_RDWR | O_CREAT | O_APPEND);
    REQUIRE(write_at(fd, text.data(), 500, 0) == 500);
    const int plain = open_buffered(path, O_RDWR);
    CHECK(file_of(fd).mode.load() == buffer::Mode::Released);
    CHECK((contents(path) == text));
    CHECK(write_at(plain, text.data(), 10, 1000) == 10);
    CHECK(write_at(fd, text.data(), 10, 0) == 10);
    CHECK(contents(path).size() == 1020);
    CHECK(close_buffered(plain) == 0);
    CHECK(close_buffered(fd) == 0);

    fd = open_buffered(path, O_RDWR | O_APPEND);
    REQUIRE(write_at(fd, text.data(), 500, 0) == 500);
    CHECK(contents(path).size() == 1020);
    buffer::apply_flag_change(fd, O_APPEND | O_NONBLOCK);  // no change of what matters
    CHECK(file_of(fd).mode.load() == buffer::Mode::Active);
    buffer::apply_flag_change(fd, 0);
    CHECK(file_of(fd).mode.load() == buffer::Mode::Released);
    CHECK(contents(path).size() == 1520);
    CHECK(close_buffered(fd) == 0);

    fd = open_buffered(path, O_RDWR);
    REQUIRE(write_at(fd, text.data(), 500, 3000) == 500);
    buffer::apply_flag_change(fd, O_APPEND);
    CHECK(file_of(fd).mode.load() == buffer::Mode::Released);
    CHECK(contents(path).size() == 3500);
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("delayed_append_error_is_reported_and_retried") {
    const Folder folder;
    use("*:size=4k:count=4:alone,%process:threads=0");
    const std::string path = folder.path + "/full";
    const int fd = open_buffered(path, O_WRONLY | O_CREAT | O_APPEND);
    std::string text(1000, 'x');
    REQUIRE(write_at(fd, text.data(), 1000, 0) == 1000);
    failing_writes = 1;
    CHECK(buffer::flush_descriptor(fd) == ENOSPC);
    CHECK(write_at(fd, text.data(), 500, 0) == 500);
    CHECK(buffer::flush_descriptor(fd) == 0);
    CHECK((contents(path) == std::string(1500, 'x')));
    CHECK(file_of(fd).mode.load() == buffer::Mode::Active);
    CHECK(close_buffered(fd) == 0);
}
