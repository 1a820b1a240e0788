// SPDX-License-Identifier: Apache-2.0
// The lines of the record that are tables: slices in time, histograms, tasks, nodes.
#pragma once

#include "results/summary.hpp"
#include "results/totals.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

// Lines as in schema/record, without `phase`, `index` and `op`.

/// `series`: by slice of `slice_s` seconds the bytes, operations and active streams of all lanes, and the least, the
/// quartiles and the most of the rates (bytes/s) of streams that were active all through; null where there was none.
nlohmann::ordered_json series_line(const Totals& totals);
/// `histogram`: one line for each kind of call that was made; latencies in ns.
std::vector<nlohmann::ordered_json> histogram_lines(const Totals& totals);
/// `tasks`: a row for each task and lane, in the order of tasks, at most 1024 rows a line; times in s since the start
/// of the phase. What was done until the stonewall only where the phase has one.
std::vector<nlohmann::ordered_json> task_lines(const Totals& totals, const PhaseFacts& facts);
/// `nodes`: a row for each node, from the first start to the last end of its tasks. `facts.hosts` names them; with
/// `facts.clocks`, what was found of their clocks (ns).
nlohmann::ordered_json node_line(const Totals& totals, const PhaseFacts& facts);

}  // namespace sonde::results
