// SPDX-License-Identifier: Apache-2.0
// What the root finds out about plan, tasks and target before anybody starts.
#pragma once

#include "phases/context.hpp"

#include <nlohmann/json.hpp>

namespace sonde::runs {

/// Checks what needs the machine, makes the run directory, and gives the facts that all processes need: files,
/// directory, memory_backed, file_system. Fills the manifest of the context. Throws plan::PlanError and
/// EnvironmentError.
nlohmann::json inspect(phases::Context& context, int first_stage);

}  // namespace sonde::runs
