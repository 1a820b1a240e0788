// SPDX-License-Identifier: Apache-2.0
// Errors of operations: collected from all nodes and written to the record.
#pragma once

#include "phases/context.hpp"

#include <nlohmann/json.hpp>

namespace sonde::phases {

/// The first errors of each node's tasks in this phase, at the root; elsewhere empty. All processes call it.
nlohmann::json gather_errors(const RunContext& context, const plan::Phase& phase);

/// Writes the `error` lines. The first error that is not a mismatch becomes the outcome. At the root.
void write_errors(RunContext& context, const plan::Phase& phase, const nlohmann::json& errors);

}  // namespace sonde::phases
