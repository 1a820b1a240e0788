// SPDX-License-Identifier: Apache-2.0
#include "meters/target_meter.hpp"

#include "plan/uint128.hpp"

#include <algorithm>
#include <new>

namespace sonde::meters {
namespace {

/// Slices of a meter of so many targets: 64 KiB of them in each direction, and never fewer than 16.
std::uint32_t compute_max_rows(std::uint32_t targets) {
    return std::clamp(std::bit_floor(2048 / std::max(targets, 1U)), 16U, TargetMeter::max_rows);
}

}  // namespace

TargetMeter::TargetMeter(std::uint64_t start, std::uint64_t width) noexcept
    : row_start_(start),
      row_end_(start + std::max<std::uint64_t>(width, 1)),
      start_(start),
      width_(std::max<std::uint64_t>(width, 1)) {
}

std::uint32_t TargetMeter::find_or_add_target(std::string_view name) {
    const auto match = std::find(names_.begin(), names_.end(), name);
    if (match == names_.end()) {
        if (names_.size() == max_targets) {
            return no_target;
        }
        names_.emplace_back(name);
        return static_cast<std::uint32_t>(names_.size() - 1);
    }
    return static_cast<std::uint32_t>(match - names_.begin());
}

template <class T>
TargetMeter::ZeroedArray<T> TargetMeter::allocate_zeroed(std::size_t count) {
    void* const memory = std::calloc(count, sizeof(T));
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return ZeroedArray<T>(static_cast<T*>(memory));
}

void TargetMeter::allocate_counters() {
    if (names_.size() <= stride_) {
        return;
    }
    // By half as many again, so that files that each bring a target do not copy everything each time.
    const auto stride = static_cast<std::uint32_t>(std::max<std::size_t>(names_.size(), stride_ + stride_ / 2));
    while (capacity_ > compute_max_rows(stride)) {
        merge_row_pairs();
        capacity_ /= 2;
    }
    // Counts own what they hold, and what they held goes with `wider`. NOLINTBEGIN(clang-analyzer-unix.Malloc)
    for (TargetArrays& counts : counts_) {
        TargetArrays wider{allocate_zeroed<std::uint64_t>(TargetLatency::buckets * stride),
                           allocate_zeroed<std::uint64_t>(stride),
                           allocate_zeroed<TargetCell>(static_cast<std::size_t>(capacity_) * stride)};
        for (std::size_t t = 0; t < stride_; ++t) {
            for (std::size_t bucket = 0; bucket < TargetLatency::buckets; ++bucket) {
                if (const std::uint64_t value = counts.latency[bucket * stride_ + t]; value != 0) {
                    wider.latency[bucket * stride + t] = value;
                }
            }
            wider.longest[t] = counts.longest[t];
            for (std::size_t row = 0; row < capacity_; ++row) {
                if (const TargetCell& cell = counts.cells[row * stride_ + t]; cell.is_used()) {
                    wider.cells[row * stride + t] = cell;
                }
            }
        }
        counts = std::move(wider);
    }
    stride_ = stride;
}
// NOLINTEND(clang-analyzer-unix.Malloc)

/// Slices twice as wide: neighbors become one.
void TargetMeter::merge_row_pairs() noexcept {
    for (TargetArrays& counts : counts_) {
        for (std::size_t row = 0; stride_ > 0 && row < capacity_; ++row) {
            for (std::size_t t = 0; t < stride_; ++t) {
                const TargetCell from = counts.cells[row * stride_ + t];
                if (from.is_used()) {
                    counts.cells[row * stride_ + t] = TargetCell{};
                    counts.cells[row / 2 * stride_ + t].add(from);
                }
            }
        }
    }
    width_ *= 2;
    ++doublings_;
    row_ /= 2;
    row_start_ = start_ + row_ * width_;
    row_end_ = row_start_ + width_;
}

void TargetMeter::advance_to(std::uint64_t tick) noexcept {
    std::uint64_t row = tick <= start_ ? 0 : (tick - start_) / width_;
    while (row >= capacity_) {
        merge_row_pairs();
        row /= 2;
    }
    row_ = static_cast<std::uint32_t>(row);
    row_start_ = start_ + row * width_;
    row_end_ = row_start_ + width_;
}

/// Leaves the current slice at that of the end, where the operation is counted.
void TargetMeter::add_proportionally(unsigned kind, std::uint32_t target, std::uint64_t from, std::uint64_t to,
                                     std::uint64_t bytes) noexcept {
    from = std::max(from, start_);
    to = std::max(to, from);
    // First, so that the width does not change while the bytes are spread. An operation that ends exactly with a slice
    // belongs to that slice.
    advance_to(to > from ? to - 1 : to);
    const std::uint64_t duration = to - from;
    std::uint64_t remaining = bytes;
    for (std::uint64_t row = (from - start_) / width_; row < row_ && duration > 0; ++row) {
        const std::uint64_t begin = start_ + row * width_;
        const std::uint64_t inside = begin + width_ - std::max(from, begin);
        const auto share =
            std::min(remaining, static_cast<std::uint64_t>(static_cast<uint128>(bytes) * inside / duration));
        counts_[kind].cells[row * stride_ + target].bytes += share;
        remaining -= share;
    }
    counts_[kind].cells[row_ * stride_ + target].bytes += remaining;
}

}  // namespace sonde::meters
