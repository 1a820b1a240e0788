// SPDX-License-Identifier: Apache-2.0
// Programs that share memory with what they fork work on common files behind our back: nothing is buffered from then
// on.
#include "buffer/shared_memory.hpp"

#include "buffer/state.hpp"
#include "held.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace under_test;

TEST_CASE(
    "after a fork nothing is buffered where memory is shared: by the child in any case, by the parent if nameless") {
    const Held one(quiet);
    constexpr int no_map = -2;
    const auto retired = [&](int map, bool child) {
        return in_child([&] {
            if (map != no_map) {
                buffer::note_shared_map(map);
            }
            buffer::shared_memory_after_fork(child);
            return buffer::state.retired.load();
        });
    };
    CHECK_FALSE(retired(no_map, false));
    CHECK_FALSE(retired(one.fd, false));
    CHECK(retired(one.fd, true));
    CHECK(retired(-1, false));
    CHECK(retired(-1, true));
}
