// SPDX-License-Identifier: Apache-2.0
// The wire process of a node (wire.hpp).
#pragma once

#include "ranks/local_socket.hpp"
#include "ranks/node_address.hpp"

#include <sys/types.h>

namespace sonde::ranks {

/// First message of the leader: how to open the socket. The wire process answers with its NodeAddress.
struct WireOpening {
    std::uint32_t is_hub = 0;
    NodeAddress hub;  ///< hub: the address to bind to; others: with the port to connect to, 0 = no socket
};

/// Runs the wire process: it reports to the hub, or is the hub. `line` is the connection to the leader of its node,
/// whose process id is `leader`. Ends when the leader ends. Never returns.
[[noreturn]] void run_wire_process(Socket line, pid_t leader);

}  // namespace sonde::ranks
