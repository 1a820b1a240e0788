// SPDX-License-Identifier: Apache-2.0
// What the root finds out about plan, tasks and target before anybody starts.
#pragma once

#include "phases/context.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::runs {

/// Checks what needs the machine, makes the run directory, and gives the facts that all processes need: files,
/// directory, memory_backed, file_system. Fills the manifest of the context. Throws plan::PlanError and
/// EnvironmentError.
nlohmann::json inspect(phases::Context& context, int first_stage);

/// Asked on another node than the root's, when the run directory has been made: one sentence when this node does not
/// see the same target; empty when it does. A run directory is known by its manifest, files that lie in place by the
/// type of the file system alone.
std::string why_unseen(const phases::Context& context);

}  // namespace sonde::runs
