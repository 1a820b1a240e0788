// SPDX-License-Identifier: Apache-2.0
// Checks of plan, tasks and target by the root before the run starts.
#pragma once

#include "phases/context.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::runs {

/// Checks the plan against the machine, creates the run directory, and returns the facts for all processes: files,
/// directory, memory_backed, file_system. Fills the manifest of the context. Throws plan::PlanError and
/// EnvironmentError.
nlohmann::json inspect_target(phases::RunContext& context, int first_stage);

/// Called on nodes other than the root's after the run directory was created. Returns one sentence when this node does
/// not see the same target, else an empty string. A run directory is the same if it holds the manifest of this run. If
/// the plan names existing files (data.files.paths), only the types of the file systems are compared.
std::string explain_unseen_target(const phases::RunContext& context);

}  // namespace sonde::runs
