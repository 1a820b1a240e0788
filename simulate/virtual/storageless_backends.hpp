// SPDX-License-Identifier: Apache-2.0
// The engine's backends that reach no storage (null, paced), on the machine's clock.
#pragma once

#include "backends/backend.hpp"
#include "virtual/simulated_backend.hpp"

#include <string_view>

namespace sonde::simulate {

constexpr const char* null_backend_name = "null";
constexpr const char* paced_backend_name = "paced";

/// Time in ns of an operation that transfers nothing and waits for nothing: the engine's own loop. A guess. Without it
/// a phase that runs for a given time would never end.
constexpr Time engine_cost = 50;

/// Whether the backend of that name is neither null nor paced.
bool reaches_storage(std::string_view backend_name);

/// The engine's null or paced backend, whose operations take time on the machine's clock. Its channels act for the task
/// that runs. `backend_name` must be one of the two names above.
backends::Backend make_storageless_backend(const char* backend_name, SimulatedStorage& storage);

}  // namespace sonde::simulate
