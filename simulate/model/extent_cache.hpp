// SPDX-License-Identifier: Apache-2.0
// A cache of file extents with a limited size. It evicts the least recently used extent, from its beginning. A stream
// of any length is one extent, so the cost does not grow with the number of bytes.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>

namespace sonde::simulate {

class ExtentCache {
 public:
    explicit ExtentCache(std::uint64_t capacity = 0) : capacity_(capacity) {}

    /// End of the cached bytes without a gap from `from` on; `from` when that byte is not cached. Counts as use.
    std::uint64_t find_end_of_cached_bytes(std::uint64_t file, std::uint64_t from);
    /// Inserts bytes `from` … `until`-1, from a write or a read, and returns the number of evicted bytes.
    std::uint64_t insert(std::uint64_t file, std::uint64_t from, std::uint64_t until, bool is_written = false);
    void remove_file(std::uint64_t file);
    void clear();
    /// Evicts bytes beyond the capacity and returns their number.
    std::uint64_t set_capacity(std::uint64_t capacity);

    std::uint64_t count_cached_bytes(std::uint64_t file) const;
    /// Cached bytes that writes inserted.
    std::uint64_t count_written_bytes(std::uint64_t file) const;
    std::uint64_t bytes() const noexcept { return bytes_; }
    std::uint64_t capacity() const noexcept { return capacity_; }

 private:
    struct ExtentKey {
        std::uint64_t file = 0, from = 0;
    };
    struct CachedExtent {
        std::uint64_t until = 0;
        std::list<ExtentKey>::iterator use;  ///< in use_order_
        bool is_written = false;
    };
    struct CachedFile {
        std::map<std::uint64_t, CachedExtent> extents;  ///< by first byte; those of one kind have gaps between them
        std::uint64_t bytes = 0, written_bytes = 0;
    };
    std::uint64_t evict_excess();
    void remove_range(CachedFile& cached_file, std::uint64_t file, std::uint64_t from, std::uint64_t until);
    void add_extent(CachedFile& cached_file, std::uint64_t file, std::uint64_t from, std::uint64_t until,
                    bool is_written, std::list<ExtentKey>::iterator before);

    std::unordered_map<std::uint64_t, CachedFile> files_;
    std::list<ExtentKey> use_order_;  ///< least recently used first
    std::uint64_t capacity_ = 0, bytes_ = 0;
};

}  // namespace sonde::simulate
