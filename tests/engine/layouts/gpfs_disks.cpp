// SPDX-License-Identifier: Apache-2.0
// What `mmlsdisk -Y` and `mmlsnsd -Y` say of a GPFS file system, in the forms of two versions, and what is no such
// text.
#include "layouts/gpfs_disks.hpp"

#include "../temporary_folder.hpp"
#include "layouts/gpfs.hpp"
#include "layouts/layout_queries.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using sonde::layouts::compute_bytes_by_target;
using sonde::layouts::explain_unknown_disk;
using sonde::layouts::GpfsDisks;
using sonde::layouts::parse_gpfs_disks;
using sonde::layouts::parse_gpfs_layout;
using sonde::layouts::query_gpfs_disks;
using sonde::layouts::StripeLayout;
using sonde::layouts::to_file_stripes;
using sonde::tests::TemporaryFolder;

namespace {

using Nsds = std::vector<std::string>;

// Version 5.1: thin disks, no replica type yet.
const char* const five_disks =
    R"(mmlsdisk::HEADER:version:reserved:reserved:nsdName:driverType:sectorSize:failureGroup:metadata:data:status:availability:diskID:storagePool:remarks:numQuorumDisks:readQuorumValue:writeQuorumValue:diskSizeKB:diskUID:thinDiskType:
mmlsdisk::0:1:::meta1:nsd:512:1:yes:no:ready:up:1:system:desc:3:2:2:387826316:C0A8F6FB5E72304E::
mmlsdisk::0:1:::both1:nsd:512:2:yes:yes:ready:up:2:system:desc:3:2:2:387815832:C0A8F6FB5E723050::
mmlsdisk::0:1:::data1:nsd:512:1:no:yes:ready:up:3:nlsas:desc:3:2:2:31210004736:C0A8F6FB5E723052::
mmlsdisk::0:1:::data2:nsd:512:2:no:yes:ready:up:4:nlsas::3:2:2:31210004736:C0A8F6FB5E723054::
mmlsdisk::0:1:::data%3A3:nsd:512:2:No:Yes:ready:down:5:nlsas::3:2:2:31210004736:C0A8F6FB5E723055::
)";
const char* const their_servers =
    R"(mmlsnsd:nsd:HEADER:version:reserved:reserved:fileSystem:diskName:volumeId:serverList:thinDisk:
mmlsnsd:nsd:0:1:::fs1:meta1:090B54755E4F84E6:server-3.domain.com,server-4.domain.com::
mmlsnsd:nsd:0:1:::fs1:both1:090B54755E4F84E7:server-3.domain.com,server-4.domain.com::
mmlsnsd:nsd:0:1:::fs1:data1:090B54755E4F84E8:server-4.domain.com,server-3.domain.com::
mmlsnsd:nsd:0:1:::fs1:data2:090B54755E4F84E9:::
)";
const char* const in_nlsas =
    "metadata replication: 2 max 2\ndata replication:     1 max 2\nstorage pool name:    nlsas\n";

}  // namespace

TEST_CASE("GPFS lists data disks of each pool with their servers") {
    const GpfsDisks disks = parse_gpfs_disks(five_disks, their_servers);
    CHECK(disks.why_unknown.empty());
    const std::map<std::string, Nsds> truth{
        {"system", {"both1@server-3.domain.com,server-4.domain.com"}},
        {"nlsas", {"data1@server-4.domain.com,server-3.domain.com", "data2", "data:3"}}};
    CHECK(disks.disks_of_pool == truth);
}

TEST_CASE("columns are located by name in every version") {
    const GpfsDisks disks = parse_gpfs_disks(
        "mmlsdisk::HEADER:version:storagePool:nsdName:data:\nmmlsdisk::0:1:p:d1:yes:\nmmlsdisk::0:1:p:d2:no:\n",
        "mmlsnsd:nsd:HEADER:version:reserved:reserved:fileSystem:diskName:volumeId:serverList:deviceType:localDiskName:"
        "remarks:sizeMB:\nmmlsnsd:nsd:0:1:::fs1:d1:0A0A26E76826FFD5:ec01:generic:/dev/sdf:server node::\n");
    CHECK(disks.disks_of_pool == std::map<std::string, Nsds>{{"p", {"d1@ec01"}}});
}

TEST_CASE("disks without servers are valid, other text names none") {
    CHECK(parse_gpfs_disks(five_disks, "mmlsnsd: You must have root authority.").disks_of_pool.at("nlsas") ==
          Nsds{"data1", "data2", "data:3"});
    for (const char* wrong :
         {"", "mmlsdisk: File system fs9 is not known to the GPFS cluster.\n",
          "mmlsdisk::0:1:::d1:nsd:512:1:yes:yes:\n", "mmlsdisk::HEADER:nsdName:data:\n", ":::\n\n:"}) {
        const GpfsDisks none = parse_gpfs_disks(wrong, their_servers);
        CHECK(none.disks_of_pool.empty());
        CHECK(none.why_unknown == "what `mmlsdisk` says names no disk that holds data");
    }
}

TEST_CASE("pool is the target and its disks are members") {
    const StripeLayout layout = parse_gpfs_layout(in_nlsas, parse_gpfs_disks(five_disks, their_servers));
    REQUIRE(layout.components.size() == 1);
    CHECK(layout.components[0].target_members ==
          Nsds{"data1@server-4.domain.com,server-3.domain.com", "data2", "data:3"});
    CHECK(compute_bytes_by_target(layout, 5000) == std::map<std::string, std::uint64_t>{{"pool nlsas", 5000}});
    const std::string elsewhere = std::string(in_nlsas) + "\n";
    CHECK(parse_gpfs_layout(elsewhere, GpfsDisks()).components[0].target_members.empty());
}

TEST_CASE("file with two replicas counts twice in its pool") {
    const StripeLayout twice = parse_gpfs_layout("data replication:     2 max 2\nstorage pool name:    nlsas\n",
                                                 parse_gpfs_disks(five_disks, their_servers));
    CHECK(twice.mirror_count == 2);
    CHECK(compute_bytes_by_target(twice, 5000) == std::map<std::string, std::uint64_t>{{"pool nlsas", 10000}});
    CHECK(to_file_stripes(twice).empty());
}

TEST_CASE("refused GPFS command is reported with its answer") {
    const TemporaryFolder folder;
    const std::string path = std::getenv("PATH");
    setenv("PATH", (folder.path() + ":" + path).c_str(), 1);
    const auto is = [&folder](const char* program, const std::string& script) {
        chmod(folder.write(program, "#!/bin/sh\n" + script + "\n").c_str(), 0700);
    };
    const std::string print = "[ \"$*\" = '/dev/fs1 -Y' ] || exit 9\ncat <<'END'\n" + std::string(five_disks) + "END";
    is("mmlsdisk", print);
    is("mmlsnsd", "echo 'mmlsnsd: You must have root authority to run this command.'; exit 1");
    const GpfsDisks disks = query_gpfs_disks("/dev/fs1");
    CHECK(disks.disks_of_pool.at("nlsas") == Nsds{"data1", "data2", "data:3"});
    CHECK(explain_unknown_disk("nlsas", disks) ==
          "GPFS tells no user which of the 3 disks (NSDs) of pool nlsas holds which block; nor is it known who serves "
          "them: `mmlsnsd`: You must have root authority to run this command.");
    is("mmlsnsd", "[ \"$*\" = '-f /dev/fs1 -Y' ] || exit 9\ncat <<'END'\n" + std::string(their_servers) + "END");
    CHECK(explain_unknown_disk("nlsas", query_gpfs_disks("/dev/fs1")) ==
          "GPFS tells no user which of the 3 disks (NSDs) of pool nlsas holds which block");
    is("mmlsdisk", "echo 'mmlsdisk: File system fs1 is not known to the GPFS cluster.'; exit 1");
    CHECK(explain_unknown_disk("nlsas", query_gpfs_disks("/dev/fs1")) ==
          "which disks (NSDs) pool nlsas has is not known: `mmlsdisk`: File system fs1 is not known to the "
          "GPFS cluster.");
    setenv("PATH", path.c_str(), 1);
}
