// SPDX-License-Identifier: Apache-2.0
#include "meters/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace sonde::meters {

Histogram::BucketRange Histogram::value_range() const noexcept {
    if (min_ns > max_ns) {
        return {0, 0};
    }
    return {std::min(get_bucket_index(min_ns), buckets), std::min(get_bucket_index(max_ns) + 1, buckets)};
}

void Histogram::clear() noexcept {
    const BucketRange range = value_range();
    std::fill(counts + range.from, counts + range.to, 0U);
    sum_ns = max_ns = overflow = 0;
    min_ns = ~0ULL;
}

void Histogram::merge(const Histogram& other) noexcept {
    const BucketRange range = other.value_range();
    sum_ns += other.sum_ns;
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
    overflow += other.overflow;
    for (std::size_t i = range.from; i < range.to; ++i) {
        counts[i] += other.counts[i];
    }
}

std::uint64_t Histogram::count() const noexcept {
    std::uint64_t total = overflow;
    for (const std::uint64_t count : counts) {
        total += count;
    }
    return total;
}

std::uint64_t Histogram::quantile(double q) const noexcept {
    const std::uint64_t total = count();
    if (total == 0) {
        return 0;
    }
    const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(total))));
    if (rank >= total) {
        return max_ns;  // known exactly
    }
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
        passed += counts[i];
        if (passed >= rank) {
            return std::clamp((bucket_begin(i) + bucket_begin(i + 1) - 1) / 2, min_ns, max_ns);
        }
    }
    return max_ns;
}

std::vector<Histogram::Bucket> Histogram::list_filled_buckets() const {
    std::vector<Bucket> list;
    for (std::size_t i = 0; i < buckets; ++i) {
        if (counts[i] != 0) {
            list.push_back({bucket_begin(i), bucket_begin(i + 1), counts[i]});
        }
    }
    return list;
}

}  // namespace sonde::meters
