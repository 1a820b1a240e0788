// SPDX-License-Identifier: Apache-2.0
// The record's lines with the results of a phase.
#pragma once

#include "phases/context.hpp"
#include "results/duplex.hpp"
#include "results/summary.hpp"
#include "results/totals.hpp"

#include <cstddef>

namespace sonde::phases {

/// Writes `phase_end`, `series`, `histogram`, `nodes` and `tasks`. At the root.
void write_result_lines(const RunContext& context, std::size_t index, const results::Totals& totals,
                        const results::PhaseFacts& facts, const results::DirectionRates& direction_rates);

}  // namespace sonde::phases
