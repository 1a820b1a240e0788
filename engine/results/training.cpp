// SPDX-License-Identifier: Apache-2.0
#include "results/training.hpp"

#include <algorithm>
#include <cmath>

namespace sonde::results {

void TrainingTotals::add(const meters::TrainingMeter& meter) {
    if (meter.batches == 0) {
        return;
    }
    ++accelerators;
    batches += meter.batches;
    samples += meter.samples;
    latest_first_batch_ns = std::max(latest_first_batch_ns, meter.first_batch_ns);
    if (meter.steps_ns == 0) {
        return;
    }
    const auto steps_ns = static_cast<double>(meter.steps_ns);
    const double utilization = static_cast<double>(meter.computation_ns) / steps_ns;
    ++rated_accelerators;
    utilization_sum += utilization;
    lowest_utilization = std::min(lowest_utilization, utilization);
    samples_per_s += static_cast<double>(meter.rated_samples) / (steps_ns / 1e9);
}

void TrainingTotals::merge(const TrainingTotals& other) {
    accelerators += other.accelerators;
    batches += other.batches;
    samples += other.samples;
    rated_accelerators += other.rated_accelerators;
    utilization_sum += other.utilization_sum;
    lowest_utilization = std::min(lowest_utilization, other.lowest_utilization);
    samples_per_s += other.samples_per_s;
    latest_first_batch_ns = std::max(latest_first_batch_ns, other.latest_first_batch_ns);
}

nlohmann::json TrainingTotals::pack() const {
    return {
        accelerators,         batches, samples, rated_accelerators, utilization_sum, lowest_utilization, samples_per_s,
        latest_first_batch_ns};
}

TrainingTotals TrainingTotals::unpack(const nlohmann::json& packed) {
    return {packed.at(0), packed.at(1), packed.at(2), packed.at(3),
            packed.at(4), packed.at(5), packed.at(6), packed.at(7)};
}

nlohmann::ordered_json training_json(const TrainingTotals& totals, std::uint64_t read_bytes, double cached_share) {
    nlohmann::ordered_json line{{"accelerators", totals.accelerators},
                                {"batches", totals.batches},
                                {"samples", totals.samples},
                                {"first_batch_s", static_cast<double>(totals.latest_first_batch_ns) / 1e9}};
    if (totals.rated_accelerators > 0) {
        line["utilization"] = totals.utilization_sum / static_cast<double>(totals.rated_accelerators);
        line["lowest_utilization"] = totals.lowest_utilization;
        line["samples_per_s"] = totals.samples_per_s;
    }
    if (cached_share >= 0) {
        const auto cached =
            static_cast<std::uint64_t>(std::llround(std::min(cached_share, 1.0) * static_cast<double>(read_bytes)));
        line["cached_bytes"] = cached;
        line["storage_bytes"] = read_bytes - cached;
    }
    return line;
}

}  // namespace sonde::results
