// SPDX-License-Identifier: Apache-2.0
// The record's lines with tables: series, histograms, tasks, nodes.
#pragma once

#include "results/summary.hpp"
#include "results/totals.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

// Lines as in schema/record, without `phase`, `index` and `op`.

/// `series`: for each slice of `slice_s` seconds the bytes, operations and active streams, and minimum, quartiles
/// and maximum of the rates (bytes/s) of streams that were active during the whole slice; null without such streams.
nlohmann::ordered_json make_series_line(const Totals& totals);
/// `histogram`: one line per kind of call; latencies in ns.
std::vector<nlohmann::ordered_json> make_histogram_lines(const Totals& totals);
/// `tasks`: a row for each task and stream, in the order of tasks, at most 1024 rows a line; times in s since the start
/// of the phase. The amounts at the stonewall only for phases with one.
std::vector<nlohmann::ordered_json> make_task_lines(const Totals& totals, const PhaseFacts& facts);
/// `nodes`: a row for each node, from the first start to the last end of its tasks. `facts.hosts` names them; with
/// `facts.clocks`, the offset and drift of their clocks (ns).
nlohmann::ordered_json make_node_line(const Totals& totals, const PhaseFacts& facts);

}  // namespace sonde::results
