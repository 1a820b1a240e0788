// SPDX-License-Identifier: Apache-2.0
// How amounts of many tasks or nodes are spread, slice by slice, in bounded memory.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

/// Bucket (Histogram::bucket_of) of an amount -> how many had that much: an amount is known to 0.8 %.
using Spread = std::map<std::uint32_t, std::uint32_t>;

/// Arrays `min p25 p50 p75 max` of rates a second, a value for each slice of `slice_ns`; null where nobody is counted.
nlohmann::ordered_json spread_json(const std::vector<Spread>& slices, std::int64_t slice_ns);

}  // namespace sonde::results
