// SPDX-License-Identifier: Apache-2.0
// Errors of operations: collected from the nodes, said in sentences.
#pragma once

#include "phases/context.hpp"

#include <nlohmann/json.hpp>

namespace sonde::phases {

/// The first errors of each node's tasks in this phase, at the root; elsewhere empty. All processes call it.
nlohmann::json gather_errors(const Context& context, const plan::Phase& phase);

/// Writes the `error` lines; the first that is no mismatch becomes the outcome. At the root.
void write_errors(Context& context, const plan::Phase& phase, const nlohmann::json& errors);

}  // namespace sonde::phases
