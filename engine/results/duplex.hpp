// SPDX-License-Identifier: Apache-2.0
// What two lanes that read and write at the same time come to, beside each direction on its own.
#pragma once

#include "plan/plan.hpp"
#include "results/summary.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::results {

/// Rates of one direction at a time measured so far in a run, bytes/s; 0 = none yet.
struct HalfRates {
    double write = 0, read = 0;

    /// Takes over the transfer rate of a phase that only read or only wrote.
    void remember(plan::Op op, const std::map<std::string, RateValue>& rates);
};

/// Adds to the `lanes` of a `phase_end` line their names, and the member `duplex`: sum, fairness (the slower lane over
/// the faster) and efficiency (the sum over both half rates, where both are known).
void add_duplex(nlohmann::ordered_json& line, const plan::Phase& phase, const HalfRates& half);

}  // namespace sonde::results
