// SPDX-License-Identifier: Apache-2.0
// Amounts of each storage target in a phase, of one node or joined over nodes. Pure arithmetic.
#pragma once

#include "meters/target_board.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::results {

/// One target, reads or writes.
struct TargetStatistics {
    std::uint64_t longest_ns = 0;
    std::map<std::uint32_t, std::uint64_t>
        operations_by_latency_bucket;  ///< of single operations: bucket -> number of operations
    std::vector<meters::TargetCell> slices;

    bool is_used() const { return !slices.empty(); }
    meters::TargetCell sum_slices() const;
    /// Latency quantile `q` (0..1) of single operations: the middle of its bucket, at most the longest. 0 without
    /// operations.
    std::uint64_t quantile(double q) const;
};

/// All targets of a phase by name. Joining is associative.
struct TargetTotals {
    std::int64_t slice_ns = 0;
    std::uint64_t opened_files = 0, known_layouts = 0;  ///< files that streams opened, and number of known layouts
    std::map<std::string, std::array<TargetStatistics, 2>> statistics_by_target;  ///< read, write

    /// `slice_ns` is the width of the board's slices.
    static TargetTotals from_board(const meters::TargetBoard& board, std::int64_t slice_ns);
    void merge(const TargetTotals& other);
    /// Bytes, read or write, of which the target is known.
    std::uint64_t sum_bytes(unsigned kind) const;

    nlohmann::json pack() const;
    static TargetTotals unpack(const nlohmann::json& packed);
};

}  // namespace sonde::results
