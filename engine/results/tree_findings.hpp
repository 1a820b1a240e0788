// SPDX-License-Identifier: Apache-2.0
// Additional findings about phases on trees. Pure functions of the measurements.
#pragma once

#include "plan/plan.hpp"
#include "results/phase_findings.hpp"
#include "results/summary.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace sonde::results {

/// Change of a rate while the number of items grew or shrank: rates of the first and the last tenth of the operations.
struct RateDecline {
    double first_ops_per_s = 0, last_ops_per_s = 0;  ///< operations per second
    double ratio() const { return first_ops_per_s > 0 ? last_ops_per_s / first_ops_per_s : 0; }
};

/// For phases that create or remove items, with enough operations and slices.
std::optional<RateDecline> compute_rate_decline(const Totals& totals, plan::Op op);

/// Findings in the form of the record's `finding` line.
std::vector<nlohmann::ordered_json> find_tree_findings(const Totals& totals, const PhaseCircumstances& circumstances);

}  // namespace sonde::results
