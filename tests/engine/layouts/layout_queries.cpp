// SPDX-License-Identifier: Apache-2.0
// Layouts of files as recorded on BeeGFS, CephFS and GPFS, and texts that are no layouts.
#include "layouts/layout_queries.hpp"

#include "layouts/beegfs.hpp"
#include "layouts/ceph_format.hpp"
#include "layouts/gpfs.hpp"
#include "layouts/moosefs.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

using sonde::layouts::compute_bytes_by_target;
using sonde::layouts::find_targets_of_byte;
using sonde::layouts::parse_beegfs_layout;
using sonde::layouts::parse_ceph_layout;
using sonde::layouts::parse_gpfs_layout;
using sonde::layouts::parse_moosefs_layout;
using sonde::layouts::StripeLayout;

namespace {
using Held = std::map<std::string, std::uint64_t>;
using Names = std::vector<std::string>;
constexpr std::uint64_t kib = 1024;
}  // namespace

TEST_CASE("BeeGFS output yields chunk size and targets in order") {
    const StripeLayout layout = parse_beegfs_layout(R"(EntryID: 5-5DC49168-19C
Metadata node: mds4-p1-m2 [ID: 412]
Stripe pattern details:
+ Type: RAID0
+ Chunksize: 512K
+ Number of storage targets: desired: 4; actual: 4
+ Storage targets:
  + 4201 @ oss-4-4-stor2 [ID: 42]
  + 4202 @ oss-4-4-stor2 [ID: 42]
  + 4203 @ oss-4-4-stor2 [ID: 42]
  + 1101 @ oss-4-1-stor1 [ID: 11]
)");
    CHECK(layout.kind == "beegfs");
    REQUIRE(layout.components.size() == 1);
    CHECK(layout.components[0].stripe_bytes == 512 * kib);
    CHECK(layout.components[0].requested_stripes == 4);
    CHECK(layout.components[0].targets ==
          Names{"4201@oss-4-4-stor2", "4202@oss-4-4-stor2", "4203@oss-4-4-stor2", "1101@oss-4-1-stor1"});
    CHECK(find_targets_of_byte(layout, 512 * kib - 1) == Names{"4201@oss-4-4-stor2"});
    CHECK(find_targets_of_byte(layout, 4 * 512 * kib - 1) == Names{"1101@oss-4-1-stor1"});
    CHECK(compute_bytes_by_target(layout, 700 * kib) ==
          Held{{"4201@oss-4-4-stor2", 512 * kib}, {"4202@oss-4-4-stor2", 188 * kib}});
}

TEST_CASE("BeeGFS chunk beyond any size is refused") {
    const std::string targets = "\n+ Storage targets:\n  + 1 @ a [ID: 1]\n  + 2 @ b [ID: 2]\n";
    CHECK(parse_beegfs_layout("+ Chunksize: 1T" + targets).components[0].stripe_bytes == 1ULL << 40U);
    for (const char* size : {"9223372036854775808", "2T", "18014398509481985K", "1099511627777"}) {
        CHECK_THROWS_AS(parse_beegfs_layout("+ Chunksize: " + std::string(size) + targets), std::invalid_argument);
    }
}

TEST_CASE("BeeGFS reports fewer targets, a pool and mirror groups") {
    const StripeLayout fewer = parse_beegfs_layout(
        "Entry type: file\nStripe pattern details:\n+ Type: RAID0\n+ Chunksize: 1M\n"
        "+ Number of storage targets: desired: 4; actual: 3\n+ Storage Pool: 2 (fast)\n+ Storage targets:\n"
        "  + 1201 @ devnode2 [ID: 3]\n  + 1001 @ devmaster [ID: 1]\n  + 1101 @ devnode1 [ID: 2]\nChunk path: uF/58");
    CHECK(fewer.components[0].requested_stripes == 3);
    CHECK(fewer.components[0].stripe_bytes == 1024 * kib);
    CHECK(fewer.components[0].pool == "2");
    CHECK(fewer.components[0].targets == Names{"1201@devnode2", "1001@devmaster", "1101@devnode1"});
    const StripeLayout mirror =
        parse_beegfs_layout("+ Type: Buddy Mirror\n+ Chunksize: 512K\n+ Storage mirror buddy groups:\n  + 1\n  + 2");
    CHECK(mirror.components[0].targets == Names{"buddy group 1", "buddy group 2"});
    // A directory has a pattern and no targets.
    CHECK_THROWS_WITH_AS(parse_beegfs_layout("+ Chunksize: 4M\n+ Number of storage targets: desired: 8\n"),
                         "what beegfs-ctl says of the file's layout names no target", std::invalid_argument);
    for (const char* wrong : {"", "Error: Path is not on BeeGFS", "+ Chunksize: 4X\n+ Storage targets:\n  + 1 @ n"}) {
        CHECK_THROWS_WITH_AS(parse_beegfs_layout(wrong), "what beegfs-ctl says of the file's layout has no chunk size",
                             std::invalid_argument);
    }
}

TEST_CASE("CephFS pool is the target of all bytes") {
    const StripeLayout layout =
        parse_ceph_layout("stripe_unit=65536 stripe_count=3 object_size=4194304 pool=cephfs_data");
    CHECK(layout.kind == "ceph");
    CHECK(layout.components[0].stripe_bytes == 64 * kib);
    CHECK(layout.components[0].requested_stripes == 3);
    CHECK(layout.components[0].pool == "cephfs_data");
    CHECK(compute_bytes_by_target(layout, 1000 * kib) == Held{{"pool cephfs_data", 1000 * kib}});
    for (const char* wrong : {"", "stripe_unit=65536 stripe_count=3", "stripe_unit=x stripe_count=3 pool=p",
                              "stripe_unit=65536 stripe_count=0 pool=p"}) {
        CHECK_THROWS_AS(parse_ceph_layout(wrong), std::invalid_argument);
    }
}

TEST_CASE("GPFS output yields the pool of a file") {
    const StripeLayout layout = parse_gpfs_layout(R"(file name:            newfile
metadata replication: 1 max 2
data replication:     1 max 2
immutable:            no
appendOnly:           no
flags:
storage pool name:    system
fileset name:         root
snapshot name:
creation time:        Wed Feb 22 15:16:29 2012
Misc attributes:      ARCHIVE
Encrypted:            no
)");
    CHECK(layout.kind == "gpfs");
    CHECK(layout.components[0].pool == "system");
    CHECK(compute_bytes_by_target(layout, 5000) == Held{{"pool system", 5000}});
    CHECK_THROWS_AS(parse_gpfs_layout("mmlsattr: File x is not in a GPFS file system.\n"), std::invalid_argument);
}

TEST_CASE("layouts that need a command per file are read for few") {
    CHECK(sonde::layouts::max_layout_queries("lustre") == 1024);
    CHECK(sonde::layouts::max_layout_queries("beegfs") == 32);
    CHECK(sonde::layouts::max_layout_queries("gpfs") == 32);
    for (const char* type : {"lustre", "beegfs", "gpfs", "ceph", "fuse.ceph-fuse", "fuse.glusterfs"}) {
        CHECK(sonde::layouts::has_layouts(type));
    }
    CHECK(sonde::layouts::max_layout_queries("fhgfs") == 32);  // as BeeGFS was called
    CHECK(sonde::layouts::max_layout_queries("ext4") == 256);
    CHECK_FALSE(sonde::layouts::has_layouts("tmpfs"));
    CHECK_FALSE(sonde::layouts::has_layouts("btrfs"));
}

TEST_CASE("missing layout is explained if layouts are expected") {
    using sonde::layouts::explain_missing_layout;
    const sonde::tests::TemporaryFolder folder;
    const std::string file = folder.write("f", "bytes");
    for (const char* type : {"beegfs", "gpfs"}) {  // whose programs are not on the machines of tests
        CHECK(explain_missing_layout(file, type).reason.find("`: No such file or directory") != std::string::npos);
        CHECK(explain_missing_layout(file, type).advice.find("in PATH") != std::string::npos);
    }
    for (const auto& [type, name] : {std::pair("lustre", "lustre.lov"), std::pair("fuse.ceph-fuse", "ceph.file.layout"),
                                     std::pair("fuse.glusterfs", "trusted.glusterfs.pathinfo")}) {
        CHECK(explain_missing_layout(file, type)
                  .reason.starts_with("the attribute `" + std::string(name) + "` of a file: "));
    }
    CHECK(explain_missing_layout(file, "ext4").reason.empty());
    CHECK(explain_missing_layout(file, "nfs").reason.empty());
    CHECK(explain_missing_layout(file, "fuse").reason.empty());                         // this file is on no MooseFS
    CHECK(explain_missing_layout(folder.write("empty", ""), "beegfs").reason.empty());  // nothing lies anywhere
    CHECK(explain_missing_layout(folder / "gone", "beegfs").reason.empty());
}

TEST_CASE("MooseFS output yields the chunk server of each 64 MiB") {
    const StripeLayout layout = parse_moosefs_layout(R"(/mnt/first/f:
	chunk 0: 0000000000000001_00000001 / (id:1 ver:1)
		copy 1: 10.99.0.1:9523 (status:VALID)
	chunk 1: 0000000000000002_00000001 / (id:2 ver:1)
		copy 1: 10.99.0.1:9522 (status:VALID)
)");
    CHECK(layout.kind == "moosefs");
    REQUIRE(layout.components.size() == 1);
    CHECK(compute_bytes_by_target(layout, 70 * 1024 * kib) ==
          Held{{"10.99.0.1:9522", 6 * 1024 * kib}, {"10.99.0.1:9523", 64 * 1024 * kib}});
    CHECK(find_targets_of_byte(layout, 65 * 1024 * kib) == Names{"10.99.0.1:9522"});
}

TEST_CASE("MooseFS copies count only when valid") {
    const StripeLayout layout = parse_moosefs_layout(
        "f:\n chunk 0: 01_01 / (id:1 ver:1)\n copy 1: a:1 (status:VALID)\n copy 2: b:1 (status:VALID)\n"
        " chunk 1: 02_01 / (id:2 ver:1)\n copy 1: c:1 (status:INVALID)\n");
    REQUIRE(layout.components.size() == 2);
    CHECK(find_targets_of_byte(layout, 0) == Names{"a:1", "b:1"});
    CHECK(compute_bytes_by_target(layout, 65 * 1024 * kib) ==
          Held{{"a:1", 64 * 1024 * kib}, {"b:1", 64 * 1024 * kib}, {"?", 1024 * kib}});
    CHECK_THROWS_AS(parse_moosefs_layout("no chunks - empty file"), std::invalid_argument);
}

TEST_CASE("MooseFS chunks out of order are rejected") {
    for (const char* number : {"18446744073709551615", "1000000000000", "1"}) {
        const std::string text =
            "f:\n chunk " + std::string(number) + ": 01_01 / (id:1 ver:1)\n copy 1: a:1 (status:VALID)\n";
        CHECK_THROWS_WITH_AS(parse_moosefs_layout(text),
                             doctest::Contains(("counts chunk " + std::string(number) + " where 0 comes next").c_str()),
                             std::invalid_argument);
    }
    CHECK_THROWS_AS(parse_moosefs_layout(" chunk 0: 01_01\n chunk 0: 02_01\n"), std::invalid_argument);
    CHECK(find_targets_of_byte(parse_moosefs_layout(" chunk 0: empty\n copy 1\n"), 0) == Names{"?"});
}

TEST_CASE("truncated MooseFS output leaves later chunks unknown") {
    const StripeLayout layout = parse_moosefs_layout(
        "f:\n chunk 0: 01_01\n copy 1: a:1 (status:VALID)\n chunk 1: 02_01\n copy 1: b:1 (status:VALID)\n copy 2: c");
    CHECK(compute_bytes_by_target(layout, 300 * 1024 * kib) == Held{{"a:1", 64 * 1024 * kib}, {"?", 236 * 1024 * kib}});
    CHECK_THROWS_AS(parse_moosefs_layout(" chunk 0: 01_01\n copy 1: a:1 (stat"), std::invalid_argument);
}
