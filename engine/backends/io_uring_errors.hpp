// SPDX-License-Identifier: Apache-2.0
// Sentences about io_uring for the user: why it cannot be used here, and what to do.
#pragma once

#include <string>

namespace sonde::backends {

/// Why the setup of a ring failed with this errno.
std::string explain_uring_setup_error(int error);

/// Why operations of a polled ring (io.iopoll) fail with EOPNOTSUPP.
constexpr const char* no_poll_queues =
    "nothing can be polled here (a device needs poll queues; for NVMe, nvme.poll_queues on the kernel's command line): "
    "leave out io.iopoll";

}  // namespace sonde::backends
