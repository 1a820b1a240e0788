// SPDX-License-Identifier: Apache-2.0
#include "workloads/target_counter.hpp"

#include <exception>

namespace sonde::workloads {

using meters::TargetMeter;
using patterns::StripeMap;
static_assert(TargetMeter::no_target == StripeMap::no_target);

void TargetCounter::set_file(const std::string& path, const patterns::FileStripes& stripes) {
    path_ = path;
    queried_again_.clear();
    build_stripe_map(stripes);
}

void TargetCounter::build_stripe_map(const patterns::FileStripes& stripes) {
    map_ = StripeMap(stripes, [this](const std::string& name) { return meter_.find_or_add_target(name); });
    meter_.allocate_counters();
    last_split_by_target_.resize(meter_.names().size(), 0);
    begin_ = ~0ULL;
    last_begin_distance_ = 0;
}

/// A part of a composite layout gets its targets when the first byte is written there: asked for once more then.
StripeMap::StripeExtent TargetCounter::find_extent(std::uint64_t offset) noexcept {
    StripeMap::StripeExtent extent = map_.find(offset);
    const auto is_asked_again = [&] {
        return std::find(queried_again_.begin(), queried_again_.end(), extent.from) != queried_again_.end();
    };
    if (extent.is_pending && !is_asked_again()) [[unlikely]] {
        try {
            queried_again_.push_back(extent.from);
            build_stripe_map(query_stripes_(path_));
            extent = map_.find(offset);
        } catch (const std::exception&) {
            return extent;  // without its targets the part is one that nobody knows
        }
    }
    return extent;
}

/// Makes the stretch around `offset` the current one. False when an operation there does not lie in it whole.
bool TargetCounter::select_extent(std::uint64_t offset) noexcept {
    const StripeMap::StripeExtent extent = find_extent(offset);
    if (extent.to - offset < length_) {
        return false;
    }
    begin_ = extent.from;
    last_begin_distance_ = extent.to - extent.from - length_;
    target_ = extent.target;
    return true;
}

void TargetCounter::count_split_operation(unsigned kind, std::uint64_t offset, std::uint64_t from, std::uint64_t to,
                                          std::uint64_t ns) noexcept {
    const std::uint64_t end = offset + length_;
    const std::uint32_t first = find_extent(offset).target;
    bool alone = true;
    for (std::uint64_t position = offset; position < end && alone;) {
        const StripeMap::StripeExtent extent = find_extent(position);
        alone = extent.target == first;
        position = extent.to;
    }
    if (alone) {  // stripes of one target, or of none that is known
        if (first != TargetMeter::no_target) {
            meter_.add_single(kind, first, from, to, ns, length_);
        }
        return;
    }
    ++splits_;
    for (std::uint64_t position = offset; position < end;) {
        const StripeMap::StripeExtent extent = find_extent(position);
        const std::uint64_t next = std::min(end, extent.to);
        if (extent.target != TargetMeter::no_target) {
            meter_.add_split(kind, extent.target, from, to, next - position,
                             last_split_by_target_[extent.target] != splits_);
            last_split_by_target_[extent.target] = splits_;
        }
        position = next;
    }
}

}  // namespace sonde::workloads
