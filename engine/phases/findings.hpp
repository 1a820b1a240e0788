// SPDX-License-Identifier: Apache-2.0
// The record's findings about a phase: how far its numbers can be trusted.
#pragma once

#include "phases/context.hpp"
#include "phases/timed_part.hpp"
#include "results/summary.hpp"
#include "results/validity.hpp"

namespace sonde::phases {

/// Writes the `finding` lines of a phase that came to its end, and what its backend did without, as the root's own
/// tasks saw it. At the root.
void write_findings(const Context& context, const Measured& measured, const results::PhaseFacts& facts,
                    const results::Circumstances& about);

}  // namespace sonde::phases
