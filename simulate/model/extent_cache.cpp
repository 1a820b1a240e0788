// SPDX-License-Identifier: Apache-2.0
#include "model/extent_cache.hpp"

#include <algorithm>

namespace sonde::simulate {

std::uint64_t ExtentCache::find_end_of_cached_bytes(std::uint64_t file, std::uint64_t from) {
    const auto cached_file = files_.find(file);
    if (cached_file == files_.end()) {
        return from;
    }
    const auto& extents = cached_file->second.extents;
    auto after = extents.upper_bound(from);
    if (after == extents.begin() || std::prev(after)->second.until <= from) {
        return from;
    }
    std::uint64_t until = from;
    for (auto extent = std::prev(after); extent != extents.end() && extent->first <= std::max(until, from); ++extent) {
        until = extent->second.until;
        use_order_.splice(use_order_.end(), use_order_, extent->second.use);
    }
    return until;
}

void ExtentCache::add_extent(CachedFile& cached_file, std::uint64_t file, std::uint64_t from, std::uint64_t until,
                             bool is_written, std::list<ExtentKey>::iterator before) {
    const auto use = use_order_.insert(before, {file, from});
    cached_file.extents.emplace(from, CachedExtent{until, use, is_written});
    cached_file.bytes += until - from;
    cached_file.written_bytes += is_written ? until - from : 0;
    bytes_ += until - from;
}

/// Removes a range; the rest of an extent on either side keeps its turn in the order of use.
void ExtentCache::remove_range(CachedFile& cached_file, std::uint64_t file, std::uint64_t from, std::uint64_t until) {
    auto next = cached_file.extents.lower_bound(from);
    if (next != cached_file.extents.begin() && std::prev(next)->second.until > from) {
        --next;
    }
    while (next != cached_file.extents.end() && next->first < until) {
        const std::uint64_t begin = next->first;
        const CachedExtent extent = next->second;
        const std::uint64_t length = extent.until - begin;
        cached_file.bytes -= length;
        cached_file.written_bytes -= extent.is_written ? length : 0;
        bytes_ -= length;
        cached_file.extents.erase(next);
        if (begin < from) {
            add_extent(cached_file, file, begin, from, extent.is_written, extent.use);
        }
        if (extent.until > until) {
            add_extent(cached_file, file, until, extent.until, extent.is_written, extent.use);
        }
        use_order_.erase(extent.use);
        next = cached_file.extents.lower_bound(from);
    }
}

std::uint64_t ExtentCache::insert(std::uint64_t file, std::uint64_t from, std::uint64_t until, bool is_written) {
    if (capacity_ == 0 || from >= until) {
        return 0;
    }
    CachedFile& cached_file = files_[file];
    // Merges extents of the same kind that overlap or touch the new one.
    const auto after = cached_file.extents.lower_bound(from);
    if (after != cached_file.extents.begin() && std::prev(after)->second.is_written == is_written &&
        std::prev(after)->second.until >= from) {
        until = std::max(until, std::prev(after)->second.until);
        from = std::prev(after)->first;
    }
    const auto last = cached_file.extents.upper_bound(until);
    if (last != cached_file.extents.begin() && std::prev(last)->second.is_written == is_written) {
        until = std::max(until, std::prev(last)->second.until);
    }
    remove_range(cached_file, file, from, until);
    add_extent(cached_file, file, from, until, is_written, use_order_.end());
    return evict_excess();
}

std::uint64_t ExtentCache::evict_excess() {
    std::uint64_t evicted = 0;
    while (bytes_ > capacity_) {
        const ExtentKey oldest = use_order_.front();
        const auto cached_file = files_.find(oldest.file);
        const auto extent = cached_file->second.extents.find(oldest.from);
        const CachedExtent evicted_extent = extent->second;
        const std::uint64_t until = evicted_extent.until;
        const std::uint64_t length = until - oldest.from;
        const std::uint64_t part = std::min(length, bytes_ - capacity_);
        evicted += part;
        bytes_ -= part;
        cached_file->second.bytes -= part;
        cached_file->second.written_bytes -= evicted_extent.is_written ? part : 0;
        const auto use = evicted_extent.use;
        cached_file->second.extents.erase(extent);
        if (part < length) {
            use->from = oldest.from + part;
            cached_file->second.extents.emplace(use->from, CachedExtent{until, use, evicted_extent.is_written});
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

std::uint64_t ExtentCache::count_cached_bytes(std::uint64_t file) const {
    const auto cached_file = files_.find(file);
    return cached_file == files_.end() ? 0 : cached_file->second.bytes;
}

std::uint64_t ExtentCache::count_written_bytes(std::uint64_t file) const {
    const auto cached_file = files_.find(file);
    return cached_file == files_.end() ? 0 : cached_file->second.written_bytes;
}

}  // namespace sonde::simulate
