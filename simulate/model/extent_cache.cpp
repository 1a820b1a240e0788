// SPDX-License-Identifier: Apache-2.0
#include "model/extent_cache.hpp"

#include <algorithm>

namespace sonde::simulate {

std::uint64_t ExtentCache::held_to(std::uint64_t file, std::uint64_t from) {
    const auto held = files_.find(file);
    if (held == files_.end()) {
        return from;
    }
    auto after = held->second.extents.upper_bound(from);
    if (after == held->second.extents.begin()) {
        return from;
    }
    Extent& extent = std::prev(after)->second;
    if (extent.to <= from) {
        return from;
    }
    order_.splice(order_.end(), order_, extent.use);
    return extent.to;
}

std::uint64_t ExtentCache::insert(std::uint64_t file, std::uint64_t from, std::uint64_t to) {
    if (capacity_ == 0 || from >= to) {
        return 0;
    }
    Held& held = files_[file];
    auto next = held.extents.lower_bound(from);
    if (next != held.extents.begin() && std::prev(next)->second.to >= from) {
        --next;
    }
    // All that touches becomes one.
    while (next != held.extents.end() && next->first <= to) {
        from = std::min(from, next->first);
        to = std::max(to, next->second.to);
        const std::uint64_t had = next->second.to - next->first;
        held.bytes -= had;
        bytes_ -= had;
        order_.erase(next->second.use);
        next = held.extents.erase(next);
    }
    order_.push_back({file, from});
    held.extents.emplace(from, Extent{to, std::prev(order_.end())});
    held.bytes += to - from;
    bytes_ += to - from;
    return shrink();
}

std::uint64_t ExtentCache::shrink() {
    std::uint64_t given_up = 0;
    while (bytes_ > capacity_) {
        const Place oldest = order_.front();
        const auto held = files_.find(oldest.file);
        const auto extent = held->second.extents.find(oldest.from);
        const std::uint64_t to = extent->second.to;
        const std::uint64_t length = to - oldest.from;
        const std::uint64_t part = std::min(length, bytes_ - capacity_);
        given_up += part;
        bytes_ -= part;
        held->second.bytes -= part;
        const auto use = extent->second.use;
        held->second.extents.erase(extent);
        if (part < length) {
            use->from = oldest.from + part;
            held->second.extents.emplace(use->from, Extent{to, use});
            continue;
        }
        order_.erase(use);
        if (held->second.extents.empty()) {
            files_.erase(held);
        }
    }
    return given_up;
}

void ExtentCache::forget(std::uint64_t file) {
    const auto held = files_.find(file);
    if (held == files_.end()) {
        return;
    }
    for (const auto& [from, extent] : held->second.extents) {
        order_.erase(extent.use);
    }
    bytes_ -= held->second.bytes;
    files_.erase(held);
}

void ExtentCache::clear() {
    files_.clear();
    order_.clear();
    bytes_ = 0;
}

std::uint64_t ExtentCache::set_capacity(std::uint64_t capacity) {
    capacity_ = capacity;
    return shrink();
}

std::uint64_t ExtentCache::bytes_of(std::uint64_t file) const {
    const auto held = files_.find(file);
    return held == files_.end() ? 0 : held->second.bytes;
}

}  // namespace sonde::simulate
