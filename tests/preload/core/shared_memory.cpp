// SPDX-License-Identifier: Apache-2.0
// Programs that share memory with what they fork work on common files behind our back: nothing is buffered from then
// on.
#include "files/shared_memory.hpp"

#include "dirty_file.hpp"
#include "model/state.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace under_test;

TEST_CASE("shared_memory_after_fork_disables_buffering") {
    const Held one(quiet);
    constexpr int no_map = -2;
    const auto retired = [&](int map, bool child) {
        return in_child([&] {
            if (map != no_map) {
                buffer::record_shared_map(map);
            }
            buffer::check_shared_memory_after_fork(child);
            return buffer::state.is_disabled.load();
        });
    };
    CHECK_FALSE(retired(no_map, false));
    CHECK_FALSE(retired(one.fd, false));
    CHECK(retired(one.fd, true));
    CHECK(retired(-1, false));
    CHECK(retired(-1, true));
}

TEST_CASE("last_64_mapped_files_are_remembered") {
    const Folder folder;
    use(quiet);
    CHECK(in_child([&] {
        const auto file = [&](int number) {
            return open((folder.path + "/" + std::to_string(number)).c_str(), O_CREAT | O_RDWR, 0644);
        };
        const int oldest = file(0);
        buffer::record_range_lock(oldest);  // nothing is mapped yet
        buffer::record_shared_map(oldest);
        buffer::record_range_lock(-1);
        for (int i = 1; i < 64; ++i) {
            buffer::record_shared_map(file(i));
        }
        const int another = file(100);
        buffer::record_range_lock(another);
        if (buffer::state.is_disabled) {
            return false;
        }
        buffer::record_shared_map(another);  // in the place of the oldest
        buffer::record_range_lock(oldest);
        const bool forgotten = !buffer::state.is_disabled;
        buffer::record_range_lock(file(1));
        return forgotten && buffer::state.is_disabled.load();
    }));
    CHECK(in_child([&] {
        const std::string path = folder.path + "/first";
        const int first = open(path.c_str(), O_CREAT | O_RDWR, 0644);
        buffer::record_shared_map(first);
        buffer::record_range_lock(first);
        return buffer::state.is_disabled.load();
    }));
}
