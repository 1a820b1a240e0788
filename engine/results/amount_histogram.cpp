// SPDX-License-Identifier: Apache-2.0
#include "results/amount_histogram.hpp"

#include "meters/histogram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace sonde::results {
namespace {

using meters::Histogram;
using nlohmann::ordered_json;

constexpr std::array<std::pair<const char*, double>, 5> quantiles{
    {{"min", 0.0}, {"p25", 0.25}, {"p50", 0.5}, {"p75", 0.75}, {"max", 1.0}}};

/// Middle of the bucket of a quantile; null without members.
ordered_json find_quantile_amount(const AmountHistogram& spread, double share, double seconds) {
    std::uint64_t count = 0;
    for (const auto& [bucket, n] : spread) {
        count += n;
    }
    const double exact = std::ceil(share * static_cast<double>(count));
    const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(exact));
    std::uint64_t cumulative = 0;
    for (const auto& [bucket, n] : spread) {
        cumulative += n;
        if (cumulative >= rank) {
            return static_cast<double>(Histogram::bucket_begin(bucket) + Histogram::bucket_begin(bucket + 1) - 1) / 2 /
                   seconds;
        }
    }
    return nullptr;
}

}  // namespace

ordered_json histograms_to_json(const std::vector<AmountHistogram>& slices, std::int64_t slice_ns) {
    ordered_json out;
    for (const auto& [name, share] : quantiles) {
        ordered_json values = ordered_json::array();
        for (const AmountHistogram& spread : slices) {
            values.push_back(find_quantile_amount(spread, share, static_cast<double>(slice_ns) / 1e9));
        }
        out[name] = std::move(values);
    }
    return out;
}

}  // namespace sonde::results
