// SPDX-License-Identifier: Apache-2.0
// The record's lines with the numbers of a phase.
#pragma once

#include "phases/context.hpp"
#include "results/duplex.hpp"
#include "results/summary.hpp"
#include "results/totals.hpp"

#include <cstddef>

namespace sonde::phases {

/// Writes `phase_end`, `series`, `histogram`, `nodes` and `tasks`. At the root.
void write_lines(const Context& context, std::size_t index, const results::Totals& totals,
                 const results::PhaseFacts& facts, const results::HalfRates& half);

}  // namespace sonde::phases
