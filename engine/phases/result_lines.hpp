// SPDX-License-Identifier: Apache-2.0
// The record's lines with the results of a phase.
#pragma once

#include "phases/context.hpp"
#include "plan/plan.hpp"
#include "results/duplex.hpp"
#include "results/phase_findings.hpp"
#include "results/summary.hpp"
#include "results/totals.hpp"

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {

/// Writes `phase_end`, `series`, `histogram`, `nodes` and `tasks`. At the root.
void write_result_lines(const RunContext& context, std::size_t index, const results::Totals& totals,
                        const results::PhaseFacts& facts, const results::DirectionRates& direction_rates);

/// `phase`, `index` and `op`, then the members of `line`.
nlohmann::ordered_json with_phase_members(const plan::Phase& phase, std::size_t index,
                                          const nlohmann::ordered_json& line);

/// Writes the `finding` lines of a finished phase. `notes`: features that the backend could not use, with the number of
/// tasks. At the root.
void write_findings(const RunContext& context, const results::Totals& totals, const std::map<std::string, int>& notes,
                    const results::PhaseFacts& facts, const results::PhaseCircumstances& circumstances);

}  // namespace sonde::phases
