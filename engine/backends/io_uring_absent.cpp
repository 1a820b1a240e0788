// SPDX-License-Identifier: Apache-2.0
// Stands in for the io_uring backend where liburing was not found when the engine was built: it only says why.
#include "backends/backend.hpp"

#include <stdexcept>

namespace sonde::backends {

namespace {

constexpr const char* why =
    "This engine was built without liburing: install liburing (Debian: liburing-dev, Red Hat: liburing-devel) and "
    "build "
    "again, or use the backend posix.";

Availability check_availability(const std::string& /*directory*/) {
    return {false, why};
}

std::unique_ptr<Channel> make_channel(const ChannelSetup& /*setup*/) {
    throw std::runtime_error(why);
}

}  // namespace

extern const Backend io_uring_backend;
const Backend io_uring_backend{
    .name = "io_uring",
    .summary = "asynchronous I/O with a queue (not in this build)",
    .traits = {.queue = true, .direct = true, .sync = true, .polling = true},
    .check_availability = check_availability,
    .make_channel = make_channel,
};

}  // namespace sonde::backends
