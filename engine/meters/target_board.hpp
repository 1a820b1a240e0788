// SPDX-License-Identifier: Apache-2.0
// Sums of the counts by target of all streams of a node's processes. Plain data in zeroed shared memory;
// of its 19 MiB only the pages of targets that were used are ever touched.
#pragma once

#include "meters/target_meter.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::meters {

struct TargetBoard {
    static constexpr std::size_t longest_name = 247;

    struct AtomicTargetCell {
        std::atomic<std::uint64_t> bytes, single_ops, single_ns, split_ops;
    };
    struct DirectionCounts {
        std::atomic<std::uint64_t> longest_ns;
        std::array<std::atomic<std::uint64_t>, TargetLatency::buckets> latency;
        std::array<AtomicTargetCell, TargetMeter::max_rows> cells;
    };
    struct TargetSlot {
        std::atomic<std::uint32_t> state;  ///< 0 free, 1 being named, 2 named
        std::array<char, longest_name + 1> name;
        std::array<DirectionCounts, 2> counts_by_kind;  ///< read, write
    };

    std::atomic<std::uint64_t> opened_files;   ///< whose layout was asked for, once for each stream that opened them
    std::atomic<std::uint64_t> known_layouts;  ///< of these: that have one
    std::array<TargetSlot, TargetMeter::max_targets> targets;

    /// Adds a stream, whose slices become as wide as 2^`doublings` first widths. Processes may do so at the same time.
    /// Targets beyond the capacity of the board are not counted.
    void add(const TargetsServed& stream, std::uint32_t doublings) noexcept;
    /// Clears the board. Must not run concurrently with other calls.
    void clear() noexcept;

 private:
    void add(const TargetMeter& meter, std::uint32_t doublings) noexcept;
    TargetSlot* find_or_add_slot(std::string_view name) noexcept;
};

}  // namespace sonde::meters
