// SPDX-License-Identifier: Apache-2.0
// Updates the manifest with what later phases must know of a phase.
#pragma once

#include "phases/context.hpp"
#include "results/totals.hpp"

#include <cstddef>

namespace sonde::phases {

/// Updates the manifest of the context, equally in all processes. All processes call it. `totals` are those of the
/// root.
void update_manifest(RunContext& context, std::size_t index, const results::Totals& totals);

/// Writes the manifest to the run directory, at the root. Returns false when the run must end; the outcome has the
/// reason.
///
/// Only a later stage needs the updated manifest; the first one has all names that `clean` needs. So a full file system
/// is an error only when a stage follows.
bool save_manifest(RunContext& context, const plan::Phase& phase);

}  // namespace sonde::phases
