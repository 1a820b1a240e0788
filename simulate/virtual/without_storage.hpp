// SPDX-License-Identifier: Apache-2.0
// Backends of the engine that reach no storage (null, paced), on the clock of the machine.
#pragma once

#include "backends/backend.hpp"
#include "kernel/time.hpp"

#include <string_view>

namespace sonde::simulate {

/// What an operation takes that moves nothing and waits for nothing: the engine's own loop. A guess; with none at all
/// a phase that runs for a time would never end.
constexpr Time engine_cost = 50;

/// The engine's backend of that name with its operations in the order of the machine's clock; null for those that reach
/// storage. Its channels belong to the player that runs (set_stage).
const backends::Backend* without_storage(std::string_view name);

}  // namespace sonde::simulate
