// SPDX-License-Identifier: Apache-2.0
// The wire process of a node (wire.hpp).
#pragma once

#include "ranks/local_socket.hpp"

#include <sys/types.h>

namespace sonde::ranks {

/// Runs the wire process: it reports to the hub, or is the hub. `line` is the connection to the leader of its node,
/// whose process id is `leader`. Ends when the leader ends. Never returns.
[[noreturn]] void run_wire_process(Socket line, pid_t leader);

}  // namespace sonde::ranks
