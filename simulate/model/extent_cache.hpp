// SPDX-License-Identifier: Apache-2.0
// What a memory of limited size holds of files: extents, given up least recently used first and from their beginning,
// as a stream leaves them. A stream of any length is one extent, so the cost does not grow with the bytes.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>

namespace sonde::simulate {

class ExtentCache {
 public:
    explicit ExtentCache(std::uint64_t capacity = 0) : capacity_(capacity) {}

    /// One past the last byte that is held without a gap from `from` on; `from` itself when nothing is. Counts as use.
    std::uint64_t held_to(std::uint64_t file, std::uint64_t from);
    /// Bytes `from` … `to`-1 are here now. Bytes that had to go for them.
    std::uint64_t insert(std::uint64_t file, std::uint64_t from, std::uint64_t to);
    void forget(std::uint64_t file);
    void clear();
    /// Gives up what no longer fits. Bytes given up.
    std::uint64_t set_capacity(std::uint64_t capacity);

    std::uint64_t bytes_of(std::uint64_t file) const;
    std::uint64_t bytes() const noexcept { return bytes_; }
    std::uint64_t capacity() const noexcept { return capacity_; }

 private:
    struct Place {
        std::uint64_t file = 0, from = 0;
    };
    struct Extent {
        std::uint64_t to = 0;
        std::list<Place>::iterator use;  ///< in the order of use, the longest unused first
    };
    struct Held {
        std::map<std::uint64_t, Extent> extents;  ///< by first byte; they do not touch
        std::uint64_t bytes = 0;
    };
    std::uint64_t shrink();

    std::unordered_map<std::uint64_t, Held> files_;
    std::list<Place> order_;
    std::uint64_t capacity_ = 0, bytes_ = 0;
};

}  // namespace sonde::simulate
