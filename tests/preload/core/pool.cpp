// SPDX-License-Identifier: Apache-2.0
// Tests that threads of the pool start with the first work, end without work, and start again.
#include "buffered.hpp"

#include "files/buffer.hpp"
#include "model/state.hpp"
#include "workers/pool.hpp"

#include <sys/stat.h>

using namespace under_test;

namespace {

std::uint32_t threads() {
    const system::LockGuard lock_guard(buffer::pool.lock);
    return buffer::pool.running_threads;
}

/// Waits until `seen` is true, for a minute at most.
template <class Seen>
bool comes(Seen condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i) {
        usleep(1000);
    }
    return condition();
}

}  // namespace

TEST_CASE("threads_leave_without_active_file_and_return_with_work") {
    const Folder folder;
    use("*:size=64k:count=4,%process:age=1");
    const std::string path = folder.path + "/data";
    const auto size = [&] {
        struct stat now {};
        return stat(path.c_str(), &now) == 0 ? now.st_size : -1;
    };
    for (int times = 0; times < 2; ++times) {
        const int fd = open_buffered(path, O_RDWR | O_CREAT | O_TRUNC);
        std::vector<char> data(1000, 'x');
        REQUIRE(write_at(fd, data.data(), data.size(), 0) == 1000);
        CHECK(threads() > 0);
        CHECK(comes([&] { return size() == 1000; }));  // it did not stay here
        CHECK(close_buffered(fd) == 0);
        CHECK(comes([] { return threads() == 0; }));
    }
}
