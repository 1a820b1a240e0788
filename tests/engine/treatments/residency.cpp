// SPDX-License-Identifier: Apache-2.0
// Share of a file in the page cache: with a wrong share the speed of memory would count as that of storage.
#include "treatments/residency.hpp"

#include "../in_child.hpp"
#include "../temporary_folder.hpp"
#include "records/environment.hpp"
#include "records/file_system.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <string>
#include <vector>

using sonde::tests::TemporaryFolder;
using sonde::treatments::measure_residency;
using sonde::treatments::Residency;

namespace {

constexpr std::size_t mebibyte = 1U << 20U;

std::uint64_t page() {
    return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void drop(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(descriptor >= 0);
    REQUIRE(::fdatasync(descriptor) == 0);
    REQUIRE(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0);
    ::close(descriptor);
}

/// Reads part of a file without read-ahead.
void read_part(const std::string& path, std::uint64_t offset, std::size_t bytes) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(descriptor >= 0);
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
    std::string data(bytes, '\0');
    CHECK(::pread(descriptor, data.data(), bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes));
    ::close(descriptor);
}

bool droppable(const TemporaryFolder& folder) {
    if (sonde::records::describe_file_system(folder.path()).memory_backed) {
        MESSAGE("skipped: this folder lives in memory");
        return false;
    }
    return true;
}

}  // namespace

TEST_CASE("written_file_is_resident_until_dropped") {
    const TemporaryFolder folder;
    if (!droppable(folder)) {
        return;
    }
    const std::string path = folder.write("data", std::string(4 * mebibyte, 'x'));
    const Residency written = measure_residency({path});
    CHECK(written.is_known);
    CHECK(written.pages == 4 * mebibyte / page());
    CHECK(written.share() == 1.0);
    drop(path);
    for (int look = 0; look < 3; ++look) {
        CHECK(measure_residency({path}).resident == 0);
    }
}

TEST_CASE("read_pages_are_resident") {
    const TemporaryFolder folder;
    if (!droppable(folder)) {
        return;
    }
    const std::string path = folder.write("data", std::string(4 * mebibyte, 'x'));
    drop(path);
    read_part(path, mebibyte, mebibyte);
    const Residency residency = measure_residency({path});
    CHECK(residency.resident == mebibyte / page());
    CHECK(residency.share() == doctest::Approx(0.25));
}

TEST_CASE("holes_are_not_resident") {
    const TemporaryFolder folder;
    const std::string path = folder.write("sparse", "");
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(8 * mebibyte + 1)) == 0);
    const Residency residency = measure_residency({path});
    CHECK(residency.is_known);
    CHECK(residency.pages == 8 * mebibyte / page() + 1);
    CHECK(residency.resident == 0);
}

TEST_CASE("empty_file_has_no_pages") {
    const TemporaryFolder folder;
    const Residency residency = measure_residency({folder.write("empty", "")});
    CHECK(residency.is_known);
    CHECK(residency.pages == 0);
    CHECK(residency.share() == 0.0);
}

TEST_CASE("unreadable_file_has_unknown_residency") {
    const TemporaryFolder folder;
    CHECK_FALSE(measure_residency({}).is_known);
    CHECK_FALSE(measure_residency({folder / "absent"}).is_known);
    CHECK_FALSE(measure_residency({folder.path()}).is_known);
    const std::string pipe = folder / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_FALSE(measure_residency({pipe}).is_known);
}

TEST_CASE("many_files_are_sampled_evenly") {
    const TemporaryFolder folder;
    std::vector<std::string> files;
    for (std::size_t i = 0; i < 101; ++i) {
        // Sizes tell which files were looked at: file i has i + 1 pages.
        files.push_back(folder.write("f" + std::to_string(i), ""));
        REQUIRE(::truncate(files.back().c_str(), static_cast<off_t>((i + 1) * page())) == 0);
    }
    CHECK(measure_residency(files, 5).pages == 1 + 26 + 51 + 76 + 101);
    CHECK(measure_residency(files, 1).pages == 1);
    CHECK(measure_residency(files, 101).pages == 101 * 102 / 2);
}

TEST_CASE("residency_adds_by_pages") {
    Residency all;
    all.add({.pages = 100, .resident = 0, .is_known = true});
    all.add({.pages = 300, .resident = 300, .dirty = 7, .is_known = true});
    all.add({});
    CHECK(all.is_known);
    CHECK(all.dirty == 7);
    CHECK(all.share() == doctest::Approx(0.75));
}

TEST_CASE("mincore_matches_cachestat") {
    const TemporaryFolder folder;
    if (!droppable(folder)) {
        return;
    }
    const std::string path = folder.write("data", std::string(4 * mebibyte + 5, 'x'));
    drop(path);
    read_part(path, mebibyte, mebibyte);
    constexpr unsigned cachestat = 451;
    const std::string counted = sonde::tests::in_child([&]() -> std::string {
        if (!sonde::tests::forbid(cachestat, ENOSYS)) {
            return "no filter";
        }
        const Residency residency = measure_residency({path});
        return std::to_string(residency.is_known) + " " + std::to_string(residency.resident) + " of " +
               std::to_string(residency.pages);
    });
    CHECK(counted == "1 " + std::to_string(mebibyte / page()) + " of " + std::to_string(4 * mebibyte / page() + 1));
    CHECK(measure_residency({path}).resident == mebibyte / page());
}

TEST_CASE("foreign_file_is_unknown_without_cachestat") {
    if (!sonde::tests::is_root()) {
        MESSAGE("skipped: becoming a stranger needs root");
        return;
    }
    constexpr unsigned cachestat = 451;
    const std::string result = sonde::tests::in_child([&]() -> std::string {
        if (::setuid(65534) != 0 || !sonde::tests::forbid(cachestat, ENOSYS)) {
            return "not tried";
        }
        return measure_residency({"/etc/passwd"}).is_known ? "known" : "unknown";
    });
    CHECK(result == "unknown");
}
