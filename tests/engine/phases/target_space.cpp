// SPDX-License-Identifier: Apache-2.0
// Message about a file system of size 0: a kind that never holds data, or servers that have not reported yet.
#include "runs/target_checks.hpp"

#include <doctest/doctest.h>
#include <string>

using sonde::records::FileSystem;
using sonde::runs::describe_zero_size;

TEST_CASE("zero_file_system_size_is_explained") {
    FileSystem system;
    CHECK(describe_zero_size(system).starts_with("a kind of its own, which is no file system for data"));
    system.type = "proc";
    CHECK(describe_zero_size(system) == "proc, which is no file system for data: name another directory");
    for (const char* type : {"fuse", "fuse.ceph-fuse"}) {
        system.type = type;
        CHECK(describe_zero_size(system).find("try again in a minute") != std::string::npos);
    }
    system.type = "nfs";
    CHECK(describe_zero_size(system).find("try again") == std::string::npos);
    system.network = true;
    CHECK(describe_zero_size(system).find("try again") != std::string::npos);
}
