// SPDX-License-Identifier: Apache-2.0
#include "meters/slices.hpp"
#include "plan/uint128.hpp"

#include <algorithm>
#include <cstring>

namespace sonde::meters {

void Slices::begin(std::uint64_t* bytes, std::uint64_t* operations, std::uint32_t capacity, std::uint64_t start,
                   std::uint64_t width) noexcept {
    *this = Slices{};
    bytes_ = bytes;
    operations_ = operations;
    capacity_ = capacity;
    start_ = start;
    width_ = std::max<std::uint64_t>(1, width);
    end_ = start + width_;
    operation_count_ = 1;
    std::memset(bytes, 0, capacity * sizeof *bytes);
    std::memset(operations, 0, capacity * sizeof *operations);
}

void Slices::merge_pairs(std::span<std::uint64_t> values) noexcept {
    const std::size_t half = values.size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
        values[i] = values[2 * i] + values[2 * i + 1];
    }
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(half), values.end(), 0U);
}

/// Makes the slice that holds `tick` the current one.
void Slices::advance_to(std::uint64_t tick) noexcept {
    std::uint64_t index = tick <= start_ ? 0 : (tick - start_) / width_;
    while (index >= capacity_) {
        merge_pairs({bytes_, capacity_});
        merge_pairs({operations_, capacity_});
        width_ *= 2;
        ++doublings_;
        highest_ /= 2;
        index /= 2;
    }
    current_ = static_cast<std::uint32_t>(index);
    highest_ = std::max(highest_, current_);
    end_ = start_ + (index + 1) * width_;
}

void Slices::add(std::uint64_t from, std::uint64_t to, std::uint64_t length) noexcept {
    from = std::max(from, start_);
    to = std::max(to, from);
    // First, so that the width does not change while the bytes are spread. An operation that ends exactly with a slice
    // belongs to that slice.
    advance_to(to > from ? to - 1 : to);
    const std::uint64_t last = current_;
    const std::uint64_t first = (from - start_) / width_;
    ++operations_[last];
    std::uint64_t remaining = length;
    const std::uint64_t duration = to - from;
    for (std::uint64_t i = first; i < last && duration > 0; ++i) {
        const std::uint64_t slice_end = start_ + (i + 1) * width_;
        const std::uint64_t part = std::min(slice_end, to) - std::max(from, slice_end - width_);
        const auto share = static_cast<std::uint64_t>(static_cast<uint128>(length) * part / duration);
        bytes_[i] += std::min(share, remaining);
        remaining -= std::min(share, remaining);
    }
    bytes_[last] += remaining;
}

}  // namespace sonde::meters
