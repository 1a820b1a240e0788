// SPDX-License-Identifier: Apache-2.0
#include "model/extent_cache.hpp"

#include <algorithm>

namespace sonde::simulate {

std::uint64_t ExtentCache::cached_until(std::uint64_t file, std::uint64_t from) {
    const auto cached_file = files_.find(file);
    if (cached_file == files_.end()) {
        return from;
    }
    auto after = cached_file->second.extents.upper_bound(from);
    if (after == cached_file->second.extents.begin()) {
        return from;
    }
    CachedExtent& extent = std::prev(after)->second;
    if (extent.until <= from) {
        return from;
    }
    use_order_.splice(use_order_.end(), use_order_, extent.use);
    return extent.until;
}

std::uint64_t ExtentCache::insert(std::uint64_t file, std::uint64_t from, std::uint64_t until) {
    if (capacity_ == 0 || from >= until) {
        return 0;
    }
    CachedFile& cached_file = files_[file];
    auto next = cached_file.extents.lower_bound(from);
    if (next != cached_file.extents.begin() && std::prev(next)->second.until >= from) {
        --next;
    }
    // Merges all extents that overlap or touch the new one.
    while (next != cached_file.extents.end() && next->first <= until) {
        from = std::min(from, next->first);
        until = std::max(until, next->second.until);
        const std::uint64_t length = next->second.until - next->first;
        cached_file.bytes -= length;
        bytes_ -= length;
        use_order_.erase(next->second.use);
        next = cached_file.extents.erase(next);
    }
    use_order_.push_back({file, from});
    cached_file.extents.emplace(from, CachedExtent{until, std::prev(use_order_.end())});
    cached_file.bytes += until - from;
    bytes_ += until - from;
    return evict_excess();
}

std::uint64_t ExtentCache::evict_excess() {
    std::uint64_t evicted = 0;
    while (bytes_ > capacity_) {
        const ExtentKey oldest = use_order_.front();
        const auto cached_file = files_.find(oldest.file);
        const auto extent = cached_file->second.extents.find(oldest.from);
        const std::uint64_t until = extent->second.until;
        const std::uint64_t length = until - oldest.from;
        const std::uint64_t part = std::min(length, bytes_ - capacity_);
        evicted += part;
        bytes_ -= part;
        cached_file->second.bytes -= part;
        const auto use = extent->second.use;
        cached_file->second.extents.erase(extent);
        if (part < length) {
            use->from = oldest.from + part;
            cached_file->second.extents.emplace(use->from, CachedExtent{until, use});
            continue;
        }
        use_order_.erase(use);
        if (cached_file->second.extents.empty()) {
            files_.erase(cached_file);
        }
    }
    return evicted;
}

void ExtentCache::remove_file(std::uint64_t file) {
    const auto cached_file = files_.find(file);
    if (cached_file == files_.end()) {
        return;
    }
    for (const auto& [from, extent] : cached_file->second.extents) {
        use_order_.erase(extent.use);
    }
    bytes_ -= cached_file->second.bytes;
    files_.erase(cached_file);
}

void ExtentCache::clear() {
    files_.clear();
    use_order_.clear();
    bytes_ = 0;
}

std::uint64_t ExtentCache::set_capacity(std::uint64_t capacity) {
    capacity_ = capacity;
    return evict_excess();
}

std::uint64_t ExtentCache::cached_bytes_of(std::uint64_t file) const {
    const auto cached_file = files_.find(file);
    return cached_file == files_.end() ? 0 : cached_file->second.bytes;
}

}  // namespace sonde::simulate
