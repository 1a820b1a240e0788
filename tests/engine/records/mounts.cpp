// SPDX-License-Identifier: Apache-2.0
// Which mount holds a path: wrong answers make every other fact about the file system wrong.
#include "records/mounts.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>

using sonde::records::find_mount;
using sonde::records::find_mount_option;
using sonde::records::Mount;
using sonde::records::parse_mounts;
using sonde::records::read_extended_status;

namespace {

constexpr const char* mount_table =
    "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro,stripe=256\n"
    "21 20 0:5 / /proc rw - proc proc rw\n"
    "22 20 0:40 / /scratch rw,nosuid - lustre 10.0.0.1@o2ib:/fs rw,flock\n"
    "23 22 8:17 / /scratch/local rw - xfs /dev/sdb1 rw,sunit=1024,swidth=4096\n"
    "24 20 8:1 /home/me /mnt/with\\040blank\\134and\\011tab rw - ext4 /dev/sda1 rw\n"
    "25 20 0:50 / /over rw - tmpfs first rw\n"
    "26 25 0:51 / /over ro,relatime master:3 propagate_from:2 - tmpfs second rw,size=4k\n"
    "27 20 0:60 / /data rw - nfs4 server:/a rw\n"
    "28 27 0:61 / /data/inner rw - ext4 /dev/sdc1 rw\n"
    "29 27 0:62 / /data rw - nfs4 server:/b rw\n"
    "30 20 0:70 / /empty rw - tmpfs  rw\n"
    "this line is damaged\n"
    "31 20 0:71 / /short rw\n";

std::string source_of(const std::string& path) {
    const auto mount = find_mount(parse_mounts(mount_table), path);
    REQUIRE(mount.has_value());
    return mount->source;
}

}  // namespace

TEST_CASE("malformed_mount_lines_are_skipped") {
    const auto mounts = parse_mounts(mount_table);
    CHECK(mounts.size() == 11);
    CHECK(mounts[0].options == "rw,relatime,errors=remount-ro,stripe=256");
    CHECK(mounts[4].point == "/mnt/with blank\\and\ttab");
    CHECK(mounts[4].root == "/home/me");
    CHECK(mounts[6].read_only);
    CHECK_FALSE(mounts[5].read_only);
    CHECK(mounts[10].source.empty());
    CHECK(mounts[10].type == "tmpfs");
}

TEST_CASE("deepest_mount_holds_path") {
    CHECK(source_of("/") == "/dev/sda1");
    CHECK(source_of("/usr/bin") == "/dev/sda1");
    CHECK(source_of("/scratch") == "10.0.0.1@o2ib:/fs");
    CHECK(source_of("/scratch/job/1") == "10.0.0.1@o2ib:/fs");
    CHECK(source_of("/scratch/local/x") == "/dev/sdb1");
    CHECK(source_of("/scratching") == "/dev/sda1");
    CHECK(source_of("/mnt/with blank\\and\ttab/x") == "/dev/sda1");
}

TEST_CASE("later_mount_on_same_point_holds_path") {
    CHECK(source_of("/over/x") == "second");
}

TEST_CASE("hidden_mount_holds_no_path") {
    CHECK(source_of("/data/x") == "server:/b");
    CHECK(source_of("/data/inner/x") == "server:/b");
}

TEST_CASE("mount_table_without_root_gives_nothing") {
    CHECK_FALSE(find_mount(parse_mounts("5 4 0:1 / /proc rw - proc proc rw\n"), "/home").has_value());
    CHECK_FALSE(find_mount(parse_mounts(""), "/").has_value());
}

TEST_CASE("mount_with_itself_as_parent_does_not_loop") {
    CHECK(find_mount(parse_mounts("1 1 0:1 / / rw - rootfs rootfs rw\n"), "/a/b")->type == "rootfs");
}

TEST_CASE("mount_option_is_matched_by_full_name") {
    CHECK(find_mount_option("rw,sunit=8,swidth=64", "swidth") == "64");
    CHECK_FALSE(find_mount_option("rw,xsunit=8", "sunit").has_value());
    CHECK_FALSE(find_mount_option("rw,sunit", "sunit").has_value());
}

TEST_CASE("mount_stripes_use_unit_of_file_system") {
    const auto xfs = sonde::records::parse_mount_stripes("xfs", "rw,noatime,sunit=128,swidth=1024", 4096);
    CHECK(xfs.unit_bytes == 128 * 512);
    CHECK(xfs.width_bytes == 1024 * 512);
    const auto ext4 = sonde::records::parse_mount_stripes("ext4", "rw,relatime,errors=remount-ro,stripe=256", 1024);
    CHECK(ext4.unit_bytes == 0);
    CHECK(ext4.width_bytes == 256 * 1024);
    CHECK(sonde::records::parse_mount_stripes("xfs", "rw,noatime", 4096).width_bytes == 0);
    CHECK(sonde::records::parse_mount_stripes("lustre", "rw,stripe=256", 4096).width_bytes == 0);
}

TEST_CASE("mount_of_directory_has_device_of_stat") {
    const sonde::tests::TemporaryFolder folder;
    const auto mount = find_mount(folder.path());
    REQUIRE(mount.has_value());
    struct stat status {};
    REQUIRE(::stat(folder.path().c_str(), &status) == 0);
    if (mount->type == "btrfs" || mount->type == "overlay") {
        MESSAGE("skipped: " << mount->type << " has a device number of its own for each part");
        return;
    }
    CHECK(mount->device == std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev)));
    CHECK_FALSE(find_mount(folder / "absent").has_value());
}

TEST_CASE("bind_mount_is_distinguished_by_root") {
    if (!sonde::tests::is_root()) {
        MESSAGE("skipped: mounting needs root");
        return;
    }
    const sonde::tests::TemporaryFolder folder;
    std::filesystem::create_directories(folder / "from");
    std::filesystem::create_directories(folder / "on to");
    // A child with mounts of its own: nothing is left behind, whatever happens.
    const pid_t child = ::fork();
    if (child == 0) {
        const std::string from = folder / "from";
        const std::string onto = folder / "on to";
        if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount(from.c_str(), onto.c_str(), nullptr, MS_BIND, nullptr) != 0) {
            ::_exit(77);
        }
        const auto mount = find_mount(onto);
        const bool right = mount && mount->point == onto && mount->root.size() >= 5 &&
                           mount->root.substr(mount->root.size() - 5) == "/from";
        ::_exit(right ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WEXITSTATUS(status) == 77) {
        MESSAGE("skipped: mount namespaces are not allowed here");
        return;
    }
    CHECK(WEXITSTATUS(status) == 0);
}
