// SPDX-License-Identifier: Apache-2.0
// The record's `finding` lines of a phase.
#pragma once

#include "phases/context.hpp"
#include "phases/timed_part.hpp"
#include "results/phase_findings.hpp"
#include "results/summary.hpp"

namespace sonde::phases {

/// Writes the `finding` lines of a finished phase, including features that the backend of the root's tasks could not
/// use. At the root.
void write_findings(const RunContext& context, const TimedResult& result, const results::PhaseFacts& facts,
                    const results::Circumstances& circumstances);

}  // namespace sonde::phases
