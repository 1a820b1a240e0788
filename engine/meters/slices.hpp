// SPDX-License-Identifier: Apache-2.0
// Bandwidth over time in bounded memory: a fixed number of time slices whose width doubles when they are full.
// An operation that spans several slices is spread over them in proportion, so the sum of the slices is exactly the
// bytes moved, and a slow operation shows as a plateau, not as a gap and a spike. It is counted where it ends.
#pragma once

#include <cstdint>
#include <span>

namespace sonde::meters {

/// One task's slices. The arrays are given from outside (shared memory); ticks are whatever clock the task uses.
class Slices {
 public:
    /// `start` = tick of time zero, `width` = ticks of the first slice width.
    void begin(std::uint64_t* bytes, std::uint64_t* operations, std::uint32_t capacity, std::uint64_t start,
               std::uint64_t width) noexcept;

    /// End of the current slice: an operation that ends before it needs only add_to_current().
    std::uint64_t end_tick() const noexcept { return end_; }
    std::uint64_t start_tick() const noexcept { return end_ - width_; }
    void add_to_current(std::uint64_t length, std::uint64_t operations = 1) noexcept {
        bytes_[current_] += length;
        operations_[current_] += operations;
    }
    /// Any operation from tick `from` to tick `to`.
    void add(std::uint64_t from, std::uint64_t to, std::uint64_t length) noexcept;

    std::uint32_t count_used_slices() const noexcept { return operation_count_ == 0 ? 0 : highest_ + 1; }
    std::uint32_t doublings() const noexcept { return doublings_; }

    /// Halves the number of slices by adding neighbors.
    static void merge_pairs(std::span<std::uint64_t> values) noexcept;

 private:
    void advance_to(std::uint64_t tick) noexcept;

    std::uint64_t* bytes_ = nullptr;
    std::uint64_t* operations_ = nullptr;
    std::uint64_t start_ = 0, width_ = 1, end_ = 0;
    std::uint32_t capacity_ = 0, current_ = 0, highest_ = 0, doublings_ = 0, operation_count_ = 0;
};

}  // namespace sonde::meters
