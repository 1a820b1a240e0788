// SPDX-License-Identifier: Apache-2.0
// How a wish for stripes is put to each file system, byte by byte after lustre_user.h and word by word after the
// manuals of BeeGFS and CephFS, and what a grant that differs is called.
#include "layouts/striping.hpp"

#include "../temporary_folder.hpp"
#include "layouts/beegfs.hpp"
#include "layouts/ceph_format.hpp"
#include "layouts/lustre.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

using sonde::layouts::check_striping;
using sonde::layouts::describe_difference;
using sonde::layouts::encode_ceph_striping;
using sonde::layouts::encode_lustre_striping;
using sonde::layouts::make_beegfs_command;
using sonde::layouts::parse_lustre_layout;
using sonde::plan::Striping;
using sonde::tests::TemporaryFolder;

namespace {

std::string hexadecimal(const std::string& bytes) {
    std::string out;
    for (const char byte : bytes) {
        constexpr const char* digits = "0123456789abcdef";
        out.push_back(digits[static_cast<unsigned char>(byte) >> 4U]);
        out.push_back(digits[static_cast<unsigned char>(byte) & 15U]);
    }
    return out;
}

std::string refusal(const Striping& wanted, const std::string& file_system, bool own_directory = true) {
    try {
        check_striping(wanted, file_system, "/t", own_directory);
    } catch (const std::invalid_argument& reason) {
        return reason.what();
    }
    return "";
}

}  // namespace

TEST_CASE("stripe request equals the structure of lfs setstripe") {
    CHECK(hexadecimal(encode_lustre_striping({.count = 4, .size = 1 << 20, .pool = "", .start = 2})) ==
          "d00bd10b01000000000000000000000000000000000000000000100004000200");
    // Nothing said: size and count 0, any first target.
    CHECK(hexadecimal(encode_lustre_striping({})) ==
          "d00bd10b0100000000000000000000000000000000000000000000000000ffff");
    CHECK(hexadecimal(encode_lustre_striping({.count = -1, .size = {}, .pool = "flash", .start = {}})) ==
          "d00bd30b010000000000000000000000000000000000000000000000ffffffff"
          "666c6173680000000000000000000000");
}

TEST_CASE("CephFS object size is a multiple of the stripe unit") {
    CHECK(encode_ceph_striping({.count = 2, .size = 65536, .pool = "fast", .start = {}}) ==
          "stripe_unit=65536 object_size=4194304 stripe_count=2 pool=fast");
    CHECK(encode_ceph_striping({.count = {}, .size = 3U << 20U, .pool = "", .start = {}}) ==
          "stripe_unit=3145728 object_size=6291456");
    CHECK(encode_ceph_striping({.count = {}, .size = 8U << 20U, .pool = "", .start = {}}) ==
          "stripe_unit=8388608 object_size=8388608");
}

TEST_CASE("BeeGFS command failure is part of the sentence") {
    const Striping wanted{.count = 8, .size = 4U << 20U, .pool = "2", .start = {}};
    const std::vector<std::string> arguments{"beegfs-ctl",          "--setpattern",      "--numtargets=8",
                                             "--chunksize=4194304", "--storagepoolid=2", "/b/d"};
    CHECK(make_beegfs_command(wanted, "/b/d") == arguments);
    const TemporaryFolder folder;
    const std::string path = std::getenv("PATH");
    setenv("PATH", (folder.path() + ":" + path).c_str(), 1);
    const auto is = [&folder](const std::string& script) {
        chmod(folder.write("beegfs-ctl", "#!/bin/sh\n" + script + "\n").c_str(), 0700);
    };
    is("echo \"$@\" > " + folder.path() + "/told; echo 'New chunksize: 4194304'");
    sonde::layouts::stripe_directory(wanted, "beegfs", sonde::files::ConfinedDirectory::open("/b/d"));
    std::ostringstream call;
    call << std::ifstream(folder.path() + "/told").rdbuf();
    CHECK(call.str() == "--setpattern --numtargets=8 --chunksize=4194304 --storagepoolid=2 /b/d\n");
    is("echo 'Error: Only root may do this'; exit 1");
    CHECK_THROWS_WITH(sonde::layouts::stripe_directory(wanted, "beegfs", sonde::files::ConfinedDirectory::open("/b/d")),
                      "target.striping (count 8, size 4 MiB, pool 2) was not granted at /b/d: beegfs-ctl --setpattern "
                      "says: Error: Only root may do this");
    setenv("PATH", path.c_str(), 1);
}

TEST_CASE("unsupported striping is refused before files are created") {
    const Striping four{.count = 4, .size = {}, .pool = "", .start = {}};
    for (const char* can : {"lustre", "fuse.sonde", "beegfs", "ceph", "fuse.ceph-fuse"}) {
        CHECK(refusal(four, can) == "");
    }
    for (const char* cannot : {"ext4", "xfs", "nfs4", "gpfs", "fuse.glusterfs"}) {
        CHECK(refusal(four, cannot) == std::string("target.striping: /t is on ") + cannot +
                                           ", which is not told how to stripe files: leave it out, or name a target on "
                                           "Lustre, BeeGFS or CephFS");
    }
    const Striping third{.count = {}, .size = {}, .pool = "", .start = 3};
    CHECK(refusal(third, "lustre") == "");
    CHECK(refusal(third, "beegfs").find("BeeGFS chooses the first target itself") != std::string::npos);
    CHECK(refusal(third, "ceph").find("places objects by a hash") != std::string::npos);
    const Striping all{.count = -1, .size = {}, .pool = "", .start = {}};
    CHECK(refusal(all, "lustre") == "");
    CHECK(refusal(all, "beegfs").find("no word for all") != std::string::npos);
    CHECK(refusal(all, "ceph").find("no word for all") != std::string::npos);
    const Striping odd{.count = {}, .size = 3 * 65536, .pool = "", .start = {}};
    CHECK(refusal(odd, "lustre") == "");
    CHECK(refusal(odd, "beegfs").find("powers of two") != std::string::npos);
    const Striping pool{.count = {}, .size = {}, .pool = "2", .start = {}};
    CHECK(refusal(pool, "beegfs") == "");
    CHECK(refusal(pool, "beegfs", false).find("for directories only") != std::string::npos);
    const Striping fifteen{.count = {}, .size = {}, .pool = "abcdefghijklmno", .start = {}};
    const Striping sixteen{.count = {}, .size = {}, .pool = "abcdefghijklmnop", .start = {}};
    CHECK(refusal(fifteen, "lustre") == "");
    CHECK(refusal(sixteen, "lustre").find("at most 15 letters") != std::string::npos);
    CHECK(refusal(fifteen, "beegfs").find("the number of a pool") != std::string::npos);
}

TEST_CASE("differing grant is described member by member") {
    sonde::layouts::StripeLayout granted;
    sonde::layouts::LayoutComponent& component = granted.components.emplace_back();
    component.requested_stripes = 2;
    component.stripe_bytes = 1 << 20;
    component.targets = {"OST0003", "OST0004"};
    CHECK(describe_difference({.count = 2, .size = 1 << 20, .pool = "", .start = 3}, granted) == "");
    CHECK(describe_difference({.count = -1, .size = {}, .pool = "", .start = {}}, granted) == "");
    CHECK(describe_difference({}, granted) == "");
    CHECK(describe_difference({.count = 4, .size = 4 << 20, .pool = "flash", .start = 2}, granted) ==
          "2 targets instead of 4, stripes of 1 MiB instead of 4 MiB, no pool instead of pool flash, the first byte on "
          "OST0003 instead of OST0002");
    component.requested_stripes = 1;
    component.pool = "disk";
    CHECK(describe_difference({.count = 2, .size = {}, .pool = "flash", .start = {}}, granted) ==
          "1 target instead of 2, pool disk instead of pool flash");
    granted.components.emplace_back();
    CHECK(describe_difference({.count = 2, .size = {}, .pool = "", .start = {}}, granted) ==
          "a layout of 2 components instead of one");
}
