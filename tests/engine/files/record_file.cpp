// SPDX-License-Identifier: Apache-2.0
// The record is written to the file that is named, and never to a file of somebody else behind a planted name.
#include "files/record_file.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "../temporary_folder.hpp"
#include "swapper.hpp"

using sonde::files::RecordFile;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
    std::ofstream(path) << text;
}

bool append(const RecordFile& file, const std::string& text) {
    return ::write(file.descriptor(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// The sentence that open() fails with; empty when it does not fail.
std::string refusal(const fs::path& path) {
    try {
        RecordFile::open(path);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("missing_record_is_created_and_existing_one_appended") {
    const sonde::tests::TemporaryFolder folder;
    const fs::path root(folder.path());
    const fs::path path = root / "record";
    {
        const RecordFile file = RecordFile::open(path);
        CHECK(file.is_new());
        CHECK(append(file, "one "));
    }
    const RecordFile file = RecordFile::open(path);
    CHECK_FALSE(file.is_new());
    CHECK(append(file, "two "));
    const RecordFile again = file.reopen();
    CHECK(append(again, "three"));
    CHECK(text_of(path) == "one two three");
    file.remove();
    CHECK_FALSE(fs::exists(path));
}

TEST_CASE("links_and_devices_are_no_record") {
    const sonde::tests::TemporaryFolder folder;
    const fs::path root(folder.path());
    const fs::path victim = root / "victim";
    write_text(victim, "precious");
    fs::create_symlink(victim, root / "symbolic");
    fs::create_hard_link(victim, root / "hard");
    fs::create_directory(root / "real");
    fs::create_directory_symlink(root / "real", root / "folder");
    CHECK(refusal(root / "symbolic").find("it is a symbolic link: name the file itself") != std::string::npos);
    CHECK(refusal(root / "hard").find("it has a second name") != std::string::npos);
    CHECK(refusal(root / "folder" / "record").find("name the folder itself") != std::string::npos);
    CHECK(refusal(folder.path() + "/folder//record").find("name the folder itself") != std::string::npos);
    CHECK(refusal(root / "real").find("it is no regular file") != std::string::npos);
    CHECK(refusal(root / "none" / "record").find("make its folder first") != std::string::npos);
    CHECK(text_of(victim) == "precious");
    CHECK(fs::is_empty(root / "real"));
}

TEST_CASE("names_of_the_system_are_followed") {
    CHECK(RecordFile::open("/dev/null").descriptor() >= 0);
    CHECK(RecordFile::open("/proc/self/fd/1").descriptor() >= 0);
    CHECK(RecordFile::open("-").descriptor() >= 0);
    CHECK(RecordFile::open("").descriptor() < 0);
}

TEST_CASE("file_of_another_user_is_no_record") {
    if (::geteuid() != 0) {
        MESSAGE("not run: only root can act as a second user");
        return;
    }
    const sonde::tests::TemporaryFolder folder;
    const fs::path root(folder.path());
    const fs::path path = root / "record";
    write_text(path, "planted");
    REQUIRE(::chown(path.c_str(), 54321, 54321) == 0);
    CHECK(refusal(path).find("it belongs to user 54321") != std::string::npos);
    CHECK(text_of(path) == "planted");
}

TEST_CASE("record_that_was_exchanged_is_not_reopened") {
    const sonde::tests::TemporaryFolder folder;
    const fs::path root(folder.path());
    const fs::path path = root / "record";
    const RecordFile file = RecordFile::open(path);
    fs::rename(path, root / "moved");
    write_text(path, "other");
    CHECK_THROWS_AS(file.reopen(), std::runtime_error);
    file.remove();
    CHECK(text_of(path) == "other");
}

TEST_CASE("exchanged_folder_never_leads_to_another_file") {
    const sonde::tests::TemporaryFolder folder;
    const fs::path root(folder.path());
    const fs::path shared = root / "shared";  // where another user may rename what he likes
    const fs::path outside = root / "outside";
    fs::create_directory(shared);
    fs::create_directory(outside);
    fs::permissions(root, fs::perms::all);
    fs::permissions(shared, fs::perms::all);
    fs::create_directory(shared / "run");
    fs::create_directory_symlink(outside, shared / "link");
    write_text(outside / "record", "precious");
    const sonde::tests::Swapper swapper(shared / "run", shared / "link");
    int written = 0;
    for (int tries = 0; tries < 10'000; ++tries) {
        try {
            const RecordFile file = RecordFile::open(shared / "run" / "record");
            written += append(file, "x") ? 1 : 0;
        } catch (const std::runtime_error&) {
            // the link was there
        }
    }
    CHECK(text_of(outside / "record") == "precious");
    CHECK(written > 0);
    CHECK(written < 10'000);
}

TEST_CASE("exchanged_record_never_leads_to_another_file") {
    const sonde::tests::TemporaryFolder folder;
    const fs::path root(folder.path());
    const fs::path shared = root / "shared";
    const fs::path victim = root / "victim";
    fs::create_directory(shared);
    fs::permissions(root, fs::perms::all);
    fs::permissions(shared, fs::perms::all);
    write_text(victim, "precious");
    write_text(shared / "record", "");
    fs::create_symlink(victim, shared / "link");
    const sonde::tests::Swapper swapper(shared / "record", shared / "link");
    int written = 0;
    for (int tries = 0; tries < 10'000; ++tries) {
        try {
            const RecordFile file = RecordFile::open(shared / "record");
            written += append(file, "x") ? 1 : 0;
        } catch (const std::runtime_error&) {
            // the link was there
        }
    }
    CHECK(text_of(victim) == "precious");
    CHECK(written > 0);
    CHECK(written < 10'000);
}
