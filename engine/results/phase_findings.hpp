// SPDX-License-Identifier: Apache-2.0
// Findings about one phase, each with its evidence. Pure functions of the measurements.
#pragma once

#include "results/circumstances.hpp"
#include "results/summary.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

/// Findings in the form of the record's `finding` line, most severe first.
std::vector<nlohmann::ordered_json> find_phase_findings(const Totals& totals, const PhaseFacts& facts,
                                                        const PhaseCircumstances& circumstances);

}  // namespace sonde::results
