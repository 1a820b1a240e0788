// SPDX-License-Identifier: Apache-2.0
// Leases of the kernel: when they are taken, given up, lost and refused. Who opens a file here is another open() of
// this process, which the kernel treats as anybody's.
#include "guards/leases.hpp"

#include "dirty_file.hpp"
#include "files/passthrough.hpp"
#include "guards/lease_thread.hpp"
#include "model/state.hpp"
#include "modes/modes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

using namespace under_test;
using buffer::Guard;
using buffer::Mode;

namespace {

constexpr const char* with_leases = "*:size=4k:count=4,%process:age=600";

struct Leased {
    Folder folder;
    std::string path = folder.path + "/data";
    std::string text = std::string(500, 'x');
    int fd;
    explicit Leased(const char* params = with_leases, int flags = O_RDWR | O_CREAT) {
        use(params, true);
        if ((flags & O_CREAT) == 0) {
            close(open(path.c_str(), O_RDWR | O_CREAT, 0644));
        }
        fd = open_buffered(path, flags);
    }
    ~Leased() { CHECK(close_buffered(fd) == 0); }
    void write() { REQUIRE(write_at(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())); }
    /// Waits until the thread that released the lease has finished with the file.
    Mode mode() const {
        const system::LockGuard lock_guard(file_of(fd).lock);
        return mode_of(fd);
    }
    int kernel_lease() const { return fcntl(fd, F_GETLEASE); }
    /// Returns the size by stat(), which breaks no lease.
    long size() const {
        struct stat status {};
        REQUIRE(stat(path.c_str(), &status) == 0);
        return status.st_size;
    }
};

}  // namespace

TEST_CASE("active_file_holds_a_lease_for_its_access_mode") {
    CHECK(Leased().kernel_lease() == F_WRLCK);
    CHECK(Leased(with_leases, O_WRONLY | O_CREAT).kernel_lease() == F_WRLCK);
    const Leased reader(with_leases, O_RDONLY);
    CHECK(reader.kernel_lease() == F_RDLCK);
    CHECK(file_of(reader.fd).guard == Guard::Lease);
    CHECK(buffer::leases_held.load() == 1);
    CHECK(buffer::unguarded_files.load() == 0);
}

TEST_CASE("opener_waits_until_data_is_handed_over") {
    Leased leased;
    leased.write();
    CHECK(leased.size() == 0);
    CHECK(contents(leased.path) == leased.text);
    CHECK(leased.mode() == Mode::Released);
    CHECK(why(leased.fd) == buffer::why_opened_elsewhere);
    CHECK(leased.kernel_lease() == F_UNLCK);
    CHECK(buffer::leases_held.load() == 0);
}

TEST_CASE("truncation_by_path_waits_too") {
    Leased leased;
    leased.write();
    REQUIRE(truncate(leased.path.c_str(), 7) == 0);
    CHECK(leased.size() == 7);
}

TEST_CASE("reader_of_a_read_lease_is_not_held_up") {
    const Leased leased(with_leases, O_RDONLY);
    CHECK(contents(leased.path) == "");
    CHECK(mode_of(leased.fd) == Mode::Active);
    close(open(leased.path.c_str(), O_WRONLY));
    CHECK(leased.mode() == Mode::Released);
}

TEST_CASE("lease_is_released_during_a_bypassed_call") {
    Leased leased;
    leased.write();
    {
        const buffer::PassThrough around(leased.fd);
        CHECK(leased.kernel_lease() == F_UNLCK);
        CHECK(contents(leased.path) == leased.text);
    }
    CHECK(leased.kernel_lease() == F_WRLCK);
    CHECK(mode_of(leased.fd) == Mode::Active);
}

TEST_CASE("lease_that_is_refused_after_a_call_ends_buffering") {
    Leased leased;
    int other = -1;
    {
        const buffer::PassThrough around(leased.fd);
        other = open(leased.path.c_str(), O_RDONLY);
    }
    CHECK(mode_of(leased.fd) == Mode::Released);
    CHECK(why(leased.fd).find("another process has it open") != std::string::npos);
    close(other);
}

TEST_CASE("refused_lease_is_overridden_by_alone_only") {
    for (const char* params : {with_leases, "*:alone,%process:age=600"}) {
        CAPTURE(params);
        use(params, true);
        const Folder folder;
        const std::string path = folder.path + "/data";
        const int other = open(path.c_str(), O_RDWR | O_CREAT, 0644);
        const int fd = open_buffered(path, O_RDWR);
        const bool alone = std::string(params).find("alone") != std::string::npos;
        CHECK(mode_of(fd) == (alone ? Mode::Active : Mode::Released));
        CHECK(file_of(fd).last_guard == (alone ? Guard::NodeTable : Guard::None));
        CHECK(close_buffered(fd) == 0);
        close(other);
    }
}

TEST_CASE("chosen_file_without_leases_is_not_buffered") {
    use("*:auto,%process:age=600");
    const Folder folder;
    const int fd = open_buffered(folder.path + "/data", O_RDWR | O_CREAT);
    std::string record(1000, 'x');
    for (int i = 0; i < 200; ++i) {
        REQUIRE(write_at(fd, record.data(), 1000, i * 1000) == 1000);
    }
    CHECK(why(fd).find("grants no lease") != std::string::npos);
    CHECK(close_buffered(fd) == 0);
}

TEST_CASE("appending_is_buffered_under_a_lease_or_with_alone") {
    const auto mode = [](const char* params, bool leases) {
        use(params, leases);
        const Folder folder;
        const int fd = open_buffered(folder.path + "/log", O_WRONLY | O_CREAT | O_APPEND);
        const Mode result = mode_of(fd);
        CHECK(close_buffered(fd) == 0);
        return result;
    };
    CHECK(mode(with_leases, true) == Mode::Active);
    CHECK(mode(with_leases, false) == Mode::Released);
    CHECK(mode("*:alone", false) == Mode::Active);
}

TEST_CASE("lease_moves_to_another_descriptor_of_the_file") {
    Leased leased;
    leased.write();
    const int other = dup(leased.fd);
    buffer::register_duplicate(leased.fd, other);
    CHECK(close_buffered(leased.fd) == 0);
    leased.fd = other;
    CHECK(mode_of(other) == Mode::Active);
    CHECK(leased.kernel_lease() == F_WRLCK);
    CHECK(contents(leased.path) == leased.text);  // the kernel names the number that is closed
    CHECK(leased.mode() == Mode::Released);
}

TEST_CASE("read_lease_moves_to_another_description") {
    const Leased leased(with_leases, O_RDONLY);
    const int other = open_buffered(leased.path, O_RDONLY);
    CHECK(buffer::leases_held.load() == 1);
    const int holder = file_of(leased.fd).lease.fd;
    CHECK(holder == leased.fd);
    const int third = dup(other);  // keeps the number free of the test's own descriptors
    close(third);
    CHECK(close_buffered(other) == 0);
    CHECK(mode_of(leased.fd) == Mode::Active);
    CHECK(leased.kernel_lease() == F_RDLCK);
}

TEST_CASE("lease_is_expected_by_the_last_part_of_a_name") {
    const Leased leased;
    CHECK(buffer::may_break_own_lease("data"));
    CHECK(buffer::may_break_own_lease("elsewhere/data"));
    CHECK_FALSE(buffer::may_break_own_lease("other"));
    CHECK_FALSE(buffer::may_break_own_lease(nullptr));
}

TEST_CASE("locks_keep_pages_under_a_lease") {
    Leased leased;
    leased.write();
    buffer::read_again_after_lock(leased.fd);
    CHECK(buffer::has_dirty_pages(leased.fd));
    CHECK(file_of(leased.fd).pages.count == 1);
}

TEST_CASE("closing_gives_the_lease_up") {
    { const Leased leased; }
    CHECK(buffer::leases_held.load() == 0);
}

TEST_CASE("watched_file_holds_no_lease_and_no_data") {
    use("*:auto,%process:age=600", true);
    const Folder folder;
    const std::string path = folder.path + "/data";
    const int fd = open_buffered(path, O_RDWR | O_CREAT);
    std::string record(1000, 'x');
    for (int i = 0; i < 199; ++i) {
        REQUIRE(write_at(fd, record.data(), 1000, i * 1000) == 1000);
    }
    CHECK(buffer::leases_held.load() == 0);
    CHECK(mode_of(fd) == Mode::Suspended);
    CHECK(contents(path).size() == 199'000);
    REQUIRE(write_at(fd, record.data(), 1000, 199'000) == 1000);
    CHECK(file_of(fd).guard == Guard::Lease);
    CHECK(mode_of(fd) == Mode::Active);
    CHECK(close_buffered(fd) == 0);
}
