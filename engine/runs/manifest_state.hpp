// SPDX-License-Identifier: Apache-2.0
// The manifest of a run before its first phase: from the plan, or from an earlier stage.
#pragma once

#include "phases/context.hpp"

namespace sonde::runs {

/// Takes over the state of an earlier stage. Throws EnvironmentError when it had other tasks.
void continue_manifest(phases::RunContext& context, const files::Manifest& earlier);
/// Fills in which run this is, and what it makes.
void fill_manifest(phases::RunContext& context);

}  // namespace sonde::runs
