// SPDX-License-Identifier: Apache-2.0
// The process of a node that speaks with those of the other nodes, so that no task has to.
#pragma once

#include "ranks/wire.hpp"

#include <sys/types.h>

namespace sonde::ranks {

/// The process itself: reports to the hub, or is the hub. `line` leads to its node's leader, whose process is `leader`:
/// it ends with that one. Never returns.
[[noreturn]] void run_wire(Socket line, pid_t leader);

}  // namespace sonde::ranks
