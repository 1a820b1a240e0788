// SPDX-License-Identifier: Apache-2.0
// The rates of a phase and the line of the record that sums it up. Pure arithmetic: everything here is tested against
// known truths.
#pragma once

#include "results/totals.hpp"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::results {

/// What was found of one node's clock around a phase; all in ns.
struct NodeClock {
    int node = 0;
    std::int64_t offset_ns = 0;  ///< its clock + offset = the root's, when the phase began
    std::int64_t error_ns = 0;   ///< that is uncertain by so much, either way
    std::int64_t moved_ns = 0;   ///< how much the offset grew until the phase was over
    std::int64_t moved_error_ns = 0;
};

/// A node's host, or "node 3" where that is not known; `hosts` by node.
std::string name_of_node(const std::vector<std::string>& hosts, int node);

/// How the runner names things for the record.
struct PhaseFacts {
    std::string stopped_by;
    std::int64_t stonewall_ns = 0;   ///< 0 = none
    std::vector<std::string> hosts;  ///< by node
    double resident = -1;            ///< share of the data in page cache before; < 0 = unknown
    std::vector<NodeClock> clocks;   ///< by node; empty where there is one node
    std::string name_of(int node) const { return name_of_node(hosts, node); }
};

struct RateValue {
    std::uint64_t bytes = 0, operations = 0;
    double seconds = 0;
};
/// The named rates of a phase (docs/concepts/rates). Absent ones are not in the map.
std::map<std::string, RateValue> rates_of(const Totals& totals, const PhaseFacts& facts);

/// `phase_end` without phase, index, op (the runner adds them).
nlohmann::ordered_json phase_end_line(const Totals& totals, const PhaseFacts& facts);

}  // namespace sonde::results
