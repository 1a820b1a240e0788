// SPDX-License-Identifier: Apache-2.0
// The node command of a host: starts the processes of the run there and connects them with the hub (remote/hub.hpp).
#pragma once

namespace sonde::remote {

/// The node command: standard input and output are the connection to the hub. Returns the exit code.
int run_ssh_node();

}  // namespace sonde::remote
