// SPDX-License-Identifier: Apache-2.0
// The record's lines about storage targets.
#pragma once

#include "results/totals.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

/// Line `targets` as in schema/record, without `phase`, `index` and `op`: one row per target and kind of operation.
/// Null when no target is known.
nlohmann::ordered_json make_target_line(const Totals& totals);
/// Lines `series` of scope `target`, one for each target and kind; neighboring slices joined until all of them together
/// have at most 65,536.
std::vector<nlohmann::ordered_json> make_target_series_lines(const Totals& totals);

}  // namespace sonde::results
