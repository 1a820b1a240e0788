// SPDX-License-Identifier: Apache-2.0
// Results of duplex phases: two streams that read and write at the same time, compared with each direction alone.
#pragma once

#include "plan/plan.hpp"
#include "results/summary.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::results {

/// Latest rates of phases with one direction, bytes/s; 0 = none yet.
struct DirectionRates {
    double write = 0, read = 0;

    /// Stores the transfer rate of a phase that only read or only wrote.
    void set_rate(plan::Op op, const std::map<std::string, RateValue>& rates);
};

/// Adds to the `streams` of a `phase_end` line their names, and the member `duplex`: sum, fairness (the slower stream
/// over the faster) and efficiency (the sum divided by the sum of both direction rates, when both are known).
void add_duplex(nlohmann::ordered_json& line, const plan::Phase& phase, const DirectionRates& direction_rates);

}  // namespace sonde::results
