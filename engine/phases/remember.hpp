// SPDX-License-Identifier: Apache-2.0
// What later phases must know of a phase: it goes into the manifest.
#pragma once

#include "phases/context.hpp"
#include "results/totals.hpp"

#include <cstddef>

namespace sonde::phases {

/// Brings the context's manifest up to date, the same in all processes, which all call it. `totals` are those of the
/// root.
void remember(Context& context, std::size_t index, const results::Totals& totals);

/// Writes the manifest into the run directory, at the root. False when the run must end; then the outcome says why.
///
/// Only a later stage needs what was added since the start: the names in the first manifest are enough for `clean`. So
/// a full file system, the end of many a run, is no reason to fail where no stage follows.
bool save_manifest(Context& context, const plan::Phase& phase);

}  // namespace sonde::phases
