// SPDX-License-Identifier: Apache-2.0
// Which OSD has which byte, against what `ceph osd map` of a real cluster (16.2, four OSDs) said of the same names.
#include "layouts/ceph_placement.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

using sonde::layouts::CephPlacement;
using sonde::layouts::compute_bytes_by_target;
using sonde::layouts::find_targets_of_byte;
using sonde::layouts::hash_ceph_name;
using sonde::layouts::LayoutComponent;
using sonde::layouts::place_ceph_layout;
using sonde::layouts::StripeLayout;

namespace {

constexpr const char* pools = R"(
[{"pool_id":1,"pool_name":"names","object_hash":2,"pg_num":8},{"pool_id":2,"pool_name":"bytes","object_hash":2,"pg_num":16}]
)";
// Groups 0, 3, 5 and a are those that the cluster named.
constexpr const char* groups = R"(dumped pgs_brief
{"pg_ready":true,"pg_stats":[{"pgid":"2.0","up":[3],"acting":[3],"up_primary":3,"acting_primary":3},
{"pgid":"2.3","acting":[3],"acting_primary":3},{"pgid":"2.5","acting":[3],"acting_primary":3},
{"pgid":"2.a","acting":[1],"acting_primary":1},{"pgid":"1.0","acting":[2],"acting_primary":2}]})";
constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t inode = 0x10000000000;
constexpr const char* usual = "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=bytes";

}  // namespace

TEST_CASE("object names have the hash of Ceph") {
    CHECK(hash_ceph_name("10000000000.00000000") == 0xf0b56f30);
    CHECK(hash_ceph_name("10000000000.00000001") == 0x53388f2a);
    CHECK(hash_ceph_name("10000000000.00000002") == 0x4ef517c5);
    CHECK(hash_ceph_name("abc") == 0x251e4793);
}

TEST_CASE("objects are placed as the cluster reports") {
    const CephPlacement placement_of_answers = CephPlacement::from_command_outputs(pools, groups);
    for (const CephPlacement& placement :
         {placement_of_answers, CephPlacement::from_json_text(placement_of_answers.to_json_text())}) {
        CHECK(placement.has_pool("bytes"));
        CHECK(placement.find_osd("bytes", "", "10000000000.00000000") == "osd.3");
        CHECK(placement.find_osd("bytes", "", "10000000000.00000001") == "osd.1");
        CHECK(placement.find_osd("bytes", "", "10000000000.00000002") == "osd.3");
        CHECK(placement.find_osd("bytes", "", "abc") == "osd.3");
        CHECK(placement.find_osd("bytes", "a namespace", "abc") != "osd.3");
        CHECK_FALSE(placement.has_pool("elsewhere"));
        CHECK(placement.find_osd("elsewhere", "", "abc").empty());
    }
}

TEST_CASE("file bytes map to the OSDs of their objects") {
    const CephPlacement placement = CephPlacement::from_command_outputs(pools, groups);
    const StripeLayout plain = place_ceph_layout(usual, inode, placement);
    CHECK(plain.components[0].requested_stripes == 1);
    CHECK(find_targets_of_byte(plain, 0) == std::vector<std::string>{"osd.3"});
    CHECK(find_targets_of_byte(plain, 4 * mib) == std::vector<std::string>{"osd.1"});
    CHECK(compute_bytes_by_target(plain, 9 * mib) ==
          std::map<std::string, std::uint64_t>{{"osd.1", 4 * mib}, {"osd.3", 5 * mib}});
    // Two objects side by side, a mebibyte in turn: the third one begins when both are full.
    const StripeLayout wide =
        place_ceph_layout("stripe_unit=1048576 stripe_count=2 object_size=4194304 pool=bytes", inode, placement);
    CHECK(wide.components[0].requested_stripes == 2);
    CHECK(find_targets_of_byte(wide, 0) == std::vector<std::string>{"osd.3"});
    CHECK(find_targets_of_byte(wide, 1 * mib) == std::vector<std::string>{"osd.1"});
    CHECK(find_targets_of_byte(wide, 7 * mib) == std::vector<std::string>{"osd.1"});
    CHECK(find_targets_of_byte(wide, 8 * mib) == std::vector<std::string>{"osd.3"});
    CHECK(plain.components[1].pattern == LayoutComponent::Pattern::foreign);
    CHECK(find_targets_of_byte(plain, plain.components[1].start) == std::vector<std::string>{"?"});
}

TEST_CASE("without placement the pool is the target, junk is refused") {
    const StripeLayout layout = place_ceph_layout(usual, inode, CephPlacement());
    CHECK(find_targets_of_byte(layout, 0) == std::vector<std::string>{"pool bytes"});
    CHECK_THROWS_AS(CephPlacement::from_command_outputs("error", groups), std::invalid_argument);
    CHECK_THROWS_AS(CephPlacement::from_command_outputs(pools, "{}"), std::invalid_argument);
    CHECK_THROWS_AS(CephPlacement::from_command_outputs(pools, ""), std::invalid_argument);
    CHECK_FALSE(CephPlacement::from_json_text("").has_pool("bytes"));
}

TEST_CASE("placement groups with impossible numbers are refused") {
    for (const char* number : {"5.88e59", "1.5", "4294967296", "-4294967297", "\"1\"", "null"}) {
        const std::string answer = R"({"pg_stats":[{"pgid":"2.0","acting_primary":)" + std::string(number) + "}]}";
        CHECK_THROWS_AS(CephPlacement::from_command_outputs(pools, answer), std::invalid_argument);
        const std::string pool = R"([{"pool_id":2,"pool_name":"bytes","object_hash":2,"pg_num":)" + std::string(number);
        CHECK_THROWS_AS(CephPlacement::from_command_outputs(pool + "}]", groups), std::invalid_argument);
    }
    const char* overflow = R"({"pg_stats":[{"pgid":"2.fffffffffffffffff","acting_primary":1}]})";
    const std::string hash = R"([{"pool_name":"data","pool_id":1,"pg_num":8,"object_hash":4111111111111111111111111}])";
    CHECK_THROWS_AS(CephPlacement::from_command_outputs(hash, groups), std::invalid_argument);
    CHECK_THROWS_AS(CephPlacement::from_command_outputs(pools, overflow), std::invalid_argument);
}

namespace {

/// Puts a program called `ceph` in front of all others in PATH.
class CalledCeph {
 public:
    explicit CalledCeph(const std::string& script) : before_(std::getenv("PATH")) {
        std::filesystem::permissions(folder_.write("ceph", "#!/bin/sh\n" + script), std::filesystem::perms::owner_all);
        ::setenv("PATH", (folder_.path() + ":" + before_).c_str(), 1);
    }
    CalledCeph(const CalledCeph&) = delete;
    CalledCeph& operator=(const CalledCeph&) = delete;
    ~CalledCeph() { ::setenv("PATH", before_.c_str(), 1); }

 private:
    sonde::tests::TemporaryFolder folder_;
    std::string before_;
};

}  // namespace

TEST_CASE("unknown placement names the command and its failure") {
    using std::chrono::milliseconds;
    const std::string answers = "case \"$*\" in *pool*) cat <<'.'\n" + std::string(pools) + ".\n;; *) ";
    {
        const CalledCeph said(answers + "cat <<'.'\n" + std::string(groups) + "\n.\n;; esac\n");
        const CephPlacement placement = sonde::layouts::query_ceph_placement();
        CHECK(placement.why_unknown().empty());
        CHECK(placement.find_osd("bytes", "", "abc") == "osd.3");
    }
    {
        const CalledCeph slow(answers + "sleep 60;; esac\n");
        const CephPlacement none = sonde::layouts::query_ceph_placement(milliseconds(300));
        CHECK_FALSE(none.has_pool("bytes"));
        CHECK(none.why_unknown() == "`ceph pg dump pgs_brief`: no answer within 1 s, so it was ended");
    }
    {
        const CalledCeph refused(
            "echo '2026-11-23 auth: unable to find a keyring'; echo '[errno 2] RADOS object not found'; exit 1\n");
        CHECK(sonde::layouts::query_ceph_placement().why_unknown() ==
              "`ceph osd pool ls detail`: [errno 2] RADOS object not found");
    }
    {
        const CalledCeph other("echo hello\n");
        CHECK(sonde::layouts::query_ceph_placement().why_unknown() ==
              "what `ceph` says of its placement groups is not JSON");
    }
    CHECK(CephPlacement().why_unknown().empty());
}
