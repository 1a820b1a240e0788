// SPDX-License-Identifier: Apache-2.0
// Distribution of amounts over many tasks or nodes, slice by slice, in bounded memory.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

/// Bucket (Histogram::get_bucket_index) of an amount -> number of members. Resolution 0.8 %.
using AmountHistogram = std::map<std::uint32_t, std::uint32_t>;

/// Arrays `min p25 p50 p75 max` of rates a second, a value for each slice of `slice_ns`; null for slices without
/// members.
nlohmann::ordered_json histograms_to_json(const std::vector<AmountHistogram>& slices, std::int64_t slice_ns);

}  // namespace sonde::results
