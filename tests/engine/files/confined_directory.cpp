// SPDX-License-Identifier: Apache-2.0
// A directory that is held open: no name leads out of it, whichever way the kernel resolves names.
#include "files/confined_directory.hpp"

#include "../in_child.hpp"
#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <set>

using sonde::files::ConfinedDirectory;
using sonde::files::Descriptor;
using sonde::files::Listing;
using sonde::tests::TemporaryFolder;

namespace {

/// Resolves step by step as long as it lives.
class Stepwise {
 public:
    explicit Stepwise(bool force) { ConfinedDirectory::force_stepwise_resolution(force); }
    ~Stepwise() { ConfinedDirectory::force_stepwise_resolution(false); }
    Stepwise(const Stepwise&) = delete;
    Stepwise& operator=(const Stepwise&) = delete;
};

bool is_link_error(int error) {
    return error == ELOOP || error == ENOTDIR;
}

/// Result in a process for which openat2(2) fails with `error`: "found, link refused" when all is correct.
std::string resolve_without_openat2(const std::string& path, int error) {
    return sonde::tests::in_child([&]() -> std::string {
        if (!sonde::tests::forbid(SYS_openat2, static_cast<unsigned>(error))) {
            return "no filter";
        }
        const ConfinedDirectory root = ConfinedDirectory::open(path);
        const std::string result = root.open_subdirectory("a/b") ? "found" : "lost";
        return result +
               (is_link_error(root.open_subdirectory("link/b").error()) ? ", link refused" : ", link followed");
    });
}

}  // namespace

TEST_CASE("subdirectory names never lead out of a directory") {
    const TemporaryFolder folder;
    folder.write("root/a/b/file", "x");
    folder.write("outside/b/file", "x");
    std::filesystem::create_symlink("../outside", folder / "root/link");
    std::filesystem::create_symlink("a", folder / "root/inner");
    for (const bool force : {false, true}) {
        CAPTURE(force);
        const Stepwise stepwise(force);
        const ConfinedDirectory root = ConfinedDirectory::open(folder / "root");
        REQUIRE(root);
        const ConfinedDirectory inside = root.open_subdirectory("a/b");
        CHECK(inside);
        CHECK(inside.name() == "b");
        CHECK(inside.path() == folder / "root/a/b");
        CHECK(root.open_subdirectory("none").error() == ENOENT);
        for (const char* link : {"link", "link/b", "inner", "inner/b", "a/b/file", "a/b/file/c"}) {
            CAPTURE(link);
            CHECK(is_link_error(root.open_subdirectory(link).error()));
        }
        for (const char* name : {"", ".", "..", "a/..", "a/../../outside", "/", "/etc", "a/", "a//b", "./a"}) {
            CAPTURE(name);
            CHECK(root.open_subdirectory(name).error() == EINVAL);
        }
    }
}

TEST_CASE("kernels and filters without openat2 get the same answers") {
    const TemporaryFolder folder;
    folder.write("a/b/file", "x");
    std::filesystem::create_symlink("a", folder / "link");
    CHECK(resolve_without_openat2(folder.path(), ENOSYS) == "found, link refused");
    CHECK(resolve_without_openat2(folder.path(), EPERM) == "found, link refused");
}

TEST_CASE("another mounted file system is entered only on request") {
    const ConfinedDirectory root = ConfinedDirectory::open("/");
    for (const bool force : {false, true}) {
        const Stepwise stepwise(force);
        CHECK(root.open_subdirectory("proc").error() == EXDEV);
        CHECK(root.open_entry("proc"));
    }
}

TEST_CASE("only the path passed by the user may be a link") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "real");
    std::filesystem::create_directory_symlink("real", folder / "link");
    const ConfinedDirectory target = ConfinedDirectory::open(folder / "link");
    CHECK(target);
    CHECK(target.name() == "real");
    CHECK(is_link_error(ConfinedDirectory::open_made(folder / "link").error()));
    CHECK(is_link_error(ConfinedDirectory::open(folder.path()).open_entry("link").error()));
    CHECK(ConfinedDirectory::open_made(folder / "real"));
}

TEST_CASE("files are created and opened through no link") {
    const TemporaryFolder folder;
    folder.write("victim", "thesis");
    std::filesystem::create_directory(folder / "root");
    std::filesystem::create_symlink("../victim", folder / "root/link");
    std::filesystem::create_symlink("../made", folder / "root/dangling");
    const ConfinedDirectory root = ConfinedDirectory::open(folder / "root");
    CHECK(*root.create_file("link", 0644) == -EEXIST);
    CHECK(*root.create_file("dangling", 0644) == -EEXIST);
    CHECK(*root.open_file("link", O_WRONLY | O_TRUNC) == -ELOOP);
    CHECK(*root.open_file("dangling", O_WRONLY | O_CREAT, 0644) == -ELOOP);
    CHECK_FALSE(std::filesystem::exists(folder / "made"));
    CHECK(sonde::tests::size_of(folder / "victim") == 6);
    CHECK(*root.create_file("new", 0600) >= 0);
    CHECK(root.rename("new", "newer") == 0);
    CHECK(root.unlink("newer") == 0);
    CHECK(root.unlink("link") == 0);
    CHECK(std::filesystem::exists(folder / "victim"));
    for (const char* name : {"../victim", "..", ".", "", "a/b", "/etc/passwd"}) {
        CAPTURE(name);
        struct stat info {};
        CHECK(*root.open_file(name, O_RDONLY) == -EINVAL);
        CHECK(root.unlink(name) == -EINVAL);
        CHECK(root.rename("dangling", name) == -EINVAL);
        CHECK(root.make_directory(name, 0755) == -EINVAL);
        CHECK(root.remove_directory(name) == -EINVAL);
        CHECK(root.status(name, info) == -EINVAL);
    }
}

TEST_CASE("exchanged directory is detected and stays") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder / "root/run");
    std::filesystem::create_directories(folder / "root/other");
    const ConfinedDirectory root = ConfinedDirectory::open(folder / "root");
    const ConfinedDirectory run = root.open_subdirectory("run");
    REQUIRE(::renameat2(root.descriptor(), "run", root.descriptor(), "other", RENAME_EXCHANGE) == 0);
    CHECK(root.remove_directory(run) == ConfinedDirectory::replaced);
    CHECK(std::filesystem::exists(folder / "root/run"));
    CHECK(std::filesystem::exists(folder / "root/other"));
    REQUIRE(::renameat2(root.descriptor(), "run", root.descriptor(), "other", RENAME_EXCHANGE) == 0);
    CHECK_FALSE(run.is_removed());
    CHECK(run.open_parent().remove_directory(run) == 0);
    CHECK(run.is_removed());
    CHECK(root.remove_directory(run) == -ENOENT);
}

TEST_CASE("listing names all entries each time") {
    const TemporaryFolder folder;
    folder.write("file", "x");
    folder.write("directory/file", "x");
    const ConfinedDirectory root = ConfinedDirectory::open(folder.path());
    for (int i = 0; i < 2; ++i) {
        std::set<std::string> names;
        Listing entries = root.list();
        REQUIRE(entries.error() == 0);
        while (const char* name = entries.next()) {
            names.insert(name);
            CHECK((entries.may_be_directory() || std::string(name) == "file"));
        }
        CHECK(names == std::set<std::string>{"directory", "file"});
    }
    CHECK(ConfinedDirectory::open(folder / "none").list().error() != 0);
    CHECK(ConfinedDirectory::open(folder / "none").error() == ENOENT);
}

TEST_CASE("directories writable by other users are recognized") {
    const TemporaryFolder folder;
    const std::string path = folder / "d";
    std::filesystem::create_directory(path);
    const ConfinedDirectory directory = ConfinedDirectory::open(path);
    const auto reason = [&](mode_t mode) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        return directory.explain_unsafe_directory();
    };
    CHECK(reason(0755) == "");
    CHECK(reason(01777) == "");
    CHECK(reason(0775).starts_with("can be written by other users (mode 0775, owner user "));
    CHECK(reason(0757).starts_with("can be written by other users (mode 0757, owner user "));
    CHECK(directory.is_owned_by_caller());
    CHECK(directory.is_made_by_caller());
    CHECK(directory.owner_of_new_files() == ::geteuid());
    if (sonde::tests::is_root()) {
        REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
        CHECK(reason(0755).starts_with("belongs to user 65534"));
        CHECK_FALSE(directory.is_owned_by_caller());
        CHECK_FALSE(directory.is_made_by_caller());
    }
    Listing entries = directory.list();
    CHECK(entries.next() == nullptr);
}

TEST_CASE("directory that may be entered but not read holds files") {
    const TemporaryFolder folder;
    ::chmod(folder.path().c_str(), 0755);
    const std::string path = folder / "drop";
    folder.write("drop/file", "x");
    ::chmod(path.c_str(), 0733);
    const std::string answer = sonde::tests::in_child([&]() -> std::string {
        if (::geteuid() == 0 && ::setuid(65534) != 0) {
            return "no other user";
        }
        std::string answers;
        for (const bool force : {false, true}) {
            const Stepwise stepwise(force);
            const ConfinedDirectory root = ConfinedDirectory::open(folder.path());
            const ConfinedDirectory drop = root.open_subdirectory("drop");
            const Descriptor file = drop.open_file("file", O_RDONLY);
            answers += std::string(drop ? "open" : "closed") + (*file >= 0 ? ", file" : ", no file") +
                       (drop.list().error() == EACCES ? ", not listed; " : ", listed; ");
        }
        return answers;
    });
    ::chmod(path.c_str(), 0755);
    if (sonde::tests::is_root()) {
        CHECK(answer == "open, file, not listed; open, file, not listed; ");
    }
}
