// SPDX-License-Identifier: Apache-2.0
// What is said of a file system whose size is 0: a kind that never holds data, or servers that have said nothing yet.
#include "runs/target.hpp"

#include <doctest/doctest.h>
#include <string>

using sonde::records::FileSystem;
using sonde::runs::without_room;

TEST_CASE("a size of 0 bytes is told by what it may be") {
    FileSystem system;
    CHECK(without_room(system).starts_with("a kind of its own, which is no file system for data"));
    system.type = "proc";
    CHECK(without_room(system) == "proc, which is no file system for data: name another directory");
    for (const char* type : {"fuse", "fuse.ceph-fuse"}) {
        system.type = type;
        CHECK(without_room(system).find("try again in a minute") != std::string::npos);
    }
    system.type = "nfs";
    CHECK(without_room(system).find("try again") == std::string::npos);
    system.network = true;
    CHECK(without_room(system).find("try again") != std::string::npos);
}
