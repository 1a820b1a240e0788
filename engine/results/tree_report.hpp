// SPDX-License-Identifier: Apache-2.0
// What is said about a phase on a tree besides what is said about all. Pure functions of what was measured.
#pragma once

#include "plan/plan.hpp"
#include "results/summary.hpp"
#include "results/validity.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace sonde::results {

/// How a rate changed while the number of items there grew or shrank: of the first and of the last tenth of the
/// operations, each divided by the time it took.
struct Droop {
    double first = 0, last = 0;  ///< operations per second
    double ratio() const { return first > 0 ? last / first : 0; }
};

/// Of a phase that makes or removes items, with enough operations and slices to tell.
std::optional<Droop> droop_of(const Totals& totals, plan::Op op);

/// Findings in the form of the record's `finding` line.
std::vector<nlohmann::ordered_json> findings_of_tree(const Totals& totals, const Circumstances& about);

}  // namespace sonde::results
