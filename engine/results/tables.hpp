// SPDX-License-Identifier: Apache-2.0
// The lines of the record that are tables: slices in time, histograms, tasks, nodes.
#pragma once

#include "results/summary.hpp"
#include "results/totals.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

nlohmann::ordered_json series_line(const Totals& totals);
std::vector<nlohmann::ordered_json> histogram_lines(const Totals& totals);
std::vector<nlohmann::ordered_json> task_lines(const Totals& totals, const PhaseFacts& facts);
nlohmann::ordered_json node_line(const Totals& totals, const PhaseFacts& facts);

}  // namespace sonde::results
