// SPDX-License-Identifier: Apache-2.0
// Results of training input: how busy emulated accelerators were.
#pragma once

#include "meters/training_meter.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace sonde::results {

/// Totals over streams. merge() is associative.
struct TrainingTotals {
    std::uint64_t accelerators = 0, batches = 0, samples = 0;
    std::uint64_t rated_accelerators = 0;  ///< accelerators that had more than one batch
    double utilization_sum = 0;            ///< over those
    double lowest_utilization = 1;         ///< of those
    double samples_per_s = 0;              ///< sum over those
    std::uint64_t latest_first_batch_ns = 0;

    void add(const meters::TrainingMeter& meter);
    void merge(const TrainingTotals& other);
    nlohmann::json pack() const;
    static TrainingTotals unpack(const nlohmann::json& packed);
};

/// The member `training` of a `phase_end` line. `read_bytes` of the phase; `cached_share`: estimated share of them that
/// came from the page cache, negative when unknown.
nlohmann::ordered_json training_json(const TrainingTotals& totals, std::uint64_t read_bytes, double cached_share);

}  // namespace sonde::results
