// SPDX-License-Identifier: Apache-2.0
#include "results/duplex.hpp"

#include <algorithm>
#include <cstddef>

namespace sonde::results {

void DirectionRates::set_rate(plan::Op op, const std::map<std::string, RateValue>& rates) {
    const auto rate = rates.find("transfer");
    if (rate == rates.end() || op == plan::Op::duplex || op == plan::Op::mixed) {
        return;
    }
    (plan::writes(op) ? write : read) = static_cast<double>(rate->second.bytes) / rate->second.seconds;
}

void add_duplex(nlohmann::ordered_json& line, const plan::Phase& phase, const DirectionRates& direction_rates) {
    double sum = 0;
    double least = 1e300;
    double most = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        nlohmann::ordered_json& stream = line["streams"][i];
        stream["id"] = phase.streams[i].id;
        stream["op"] = phase.streams[i].write ? "write" : "read";
        const double rate = stream.value("bytes_per_s", 0.0);
        sum += rate;
        least = std::min(least, rate);
        most = std::max(most, rate);
    }
    if (most <= 0) {
        return;
    }
    line["duplex"] = {{"bytes_per_s", sum}, {"fairness", least / most}};
    if (direction_rates.write > 0 && direction_rates.read > 0) {
        line["duplex"]["efficiency"] = sum / (direction_rates.write + direction_rates.read);
    }
}

}  // namespace sonde::results
