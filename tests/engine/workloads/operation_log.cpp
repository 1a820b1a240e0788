// SPDX-License-Identifier: Apache-2.0
#include "workloads/operation_log.hpp"

#include "../temporary_folder.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <string>

using sonde::backends::Channel;

namespace {

/// A channel of a storage server: requests were sent again, the last one failed, and it has a virtual clock.
struct ServerChannel final : Channel {
    int open(std::uint16_t /*file*/, const sonde::backends::OpenRequest& /*request*/) override { return 0; }
    int fsync(std::uint16_t /*file*/) override { return 0; }
    int close(std::uint16_t /*file*/) override { return 0; }
    std::int64_t transfer(const sonde::backends::IoRequest& /*operation*/) noexcept override { return -5; }
    bool advance_virtual_time(std::int64_t ns) noexcept override { return ns == 7; }
    std::uint64_t retries() const noexcept override { return 3; }
    const char* last_error_text() const noexcept override { return "SlowDown"; }
};

}  // namespace

TEST_CASE("logged channel forwards retries, error and virtual time") {
    const sonde::meters::Clock clock;
    const sonde::tests::TemporaryFolder folder;
    const std::unique_ptr<Channel> channel =
        sonde::workloads::wrap_in_operation_log(std::make_unique<ServerChannel>(), folder / "log.csv", clock, 1);
    CHECK(channel->retries() == 3);
    CHECK(std::string(channel->last_error_text()) == "SlowDown");
    CHECK(channel->advance_virtual_time(7));
}
