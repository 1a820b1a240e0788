// SPDX-License-Identifier: Apache-2.0
// The rates of a phase and the record's `phase_end` line. Pure arithmetic.
#pragma once

#include "results/totals.hpp"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::results {

/// Clock of one node around a phase; all in ns.
struct NodeClock {
    int node = 0;
    std::int64_t offset_ns = 0;  ///< node clock + offset = root clock, at the begin of the phase
    std::int64_t error_ns = 0;   ///< largest error of the offset
    std::int64_t drift_ns = 0;   ///< growth of the offset until the end of the phase
    std::int64_t drift_error_ns = 0;
};

/// Host name of a node, or "node 3" when unknown; `hosts` by node.
std::string find_node_name(const std::vector<std::string>& hosts, int node);

/// Facts about a phase for the record that streams do not count.
struct PhaseFacts {
    std::string stopped_by;
    std::int64_t stonewall_ns = 0;   ///< 0 = none
    std::vector<std::string> hosts;  ///< by node
    double residency = -1;           ///< share of the data in page cache before; < 0 = unknown
    std::vector<NodeClock> clocks;   ///< by node; empty where there is one node
    std::string find_node_name(int node) const { return results::find_node_name(hosts, node); }
};

struct RateValue {
    std::uint64_t bytes = 0, operations = 0;
    double seconds = 0;
};
/// The named rates of a phase (docs/concepts/rates). Absent ones are not in the map.
std::map<std::string, RateValue> compute_rates(const Totals& totals, const PhaseFacts& facts);

/// The `phase_end` line without phase, index, op (phases/result_lines.hpp adds them).
nlohmann::ordered_json make_phase_end_line(const Totals& totals, const PhaseFacts& facts);

/// Adds the results of each direction of a mixed phase: the member `directions`, and the latency of kind `all` over
/// reads and writes.
void add_stream_directions(nlohmann::ordered_json& line, const Totals& totals);

}  // namespace sonde::results
