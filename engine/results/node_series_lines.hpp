// SPDX-License-Identifier: Apache-2.0
// The record's `series` lines of nodes.
#pragma once

#include "results/totals.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

/// Lines `series` as in schema/record, without `phase`, `index` and `op`: one a node (`scope` node), neighboring slices
/// joined until all of them together have at most 65,536; of more nodes than 256 first one with the spread over all
/// (`scope` nodes), then the extremes. None where there is only one node.
std::vector<nlohmann::ordered_json> make_node_series_lines(const Totals& totals);

}  // namespace sonde::results
