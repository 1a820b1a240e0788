// SPDX-License-Identifier: Apache-2.0
// What each node moved in each slice of time, in bounded memory: up to 256 nodes every one of them, of more the spread
// over all nodes in each slice and the whole series of the slowest and the fastest.
#pragma once

#include "results/spread.hpp"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

struct NodeSlice {
    std::uint64_t bytes = 0, operations = 0;
    int active = 0;  ///< streams between the start and the end of their transfer
};

/// One node. Times in ns since the start of the phase (root's clock).
struct NodeSeries {
    int node = 0;
    std::uint64_t bytes = 0, operations = 0;
    std::int64_t start_ns = 0, end_ns = 0;  ///< of the transfers: first start to last end
    std::vector<NodeSlice> slices;

    double seconds() const { return static_cast<double>(end_ns - start_ns) / 1e9; }
};

/// All nodes of a phase. Joining is associative; no node may be on both sides.
class NodesOverTime {
 public:
    static constexpr std::size_t most_exact = 256;  ///< nodes of which each has its series
    static constexpr std::size_t extremes = 8;      ///< of more: so many of the slowest, and as many of the fastest
    static constexpr std::int64_t most_slices =
        512;  ///< more slices than these are joined in pairs before they are kept

    /// What one stream moved, in slices of `slice_ns`, of which a stream has at most `max_slices`.
    struct StreamSlices {
        int node = 0;
        std::int64_t start_ns = 0, end_ns = 0;  ///< of its transfer
        std::int64_t slice_ns = 0;
        int max_slices = 0;
        const std::uint64_t* bytes = nullptr;  ///< `used` values
        const std::uint64_t* calls = nullptr;
        std::size_t used = 0;
    };
    void add(const StreamSlices& stream);
    void join(const NodesOverTime& other);
    /// Keeps what the limit allows. For whoever has added more nodes than that; join() does it by itself.
    void bound();

    std::int64_t slice_ns() const { return slice_ns_; }
    /// Nodes that were added.
    std::size_t nodes() const { return banded_ ? nodes_ : series_.size(); }
    /// True when only the extremes have a series of their own.
    bool banded() const { return banded_; }
    /// By number; the extremes when banded().
    const std::vector<NodeSeries>& series() const { return series_; }
    /// Of all nodes together, slice by slice; only when banded().
    const std::vector<NodeSlice>& sum() const { return sum_; }
    /// Nodes that were at work all through a slice, by the bytes (operations) that each of them moved; when banded().
    const std::vector<Spread>& byte_spread() const { return byte_spread_; }
    const std::vector<Spread>& operation_spread() const { return operation_spread_; }
    /// Numbers of the slowest and of the fastest nodes, worst (best) first; when banded().
    std::vector<int> slowest() const;
    std::vector<int> fastest() const;

    nlohmann::json pack() const;
    static NodesOverTime unpack(const nlohmann::json& packed);

 private:
    NodeSeries& of(int node);
    void band();
    void keep_extremes();
    std::vector<const NodeSeries*> by_rate() const;

    std::int64_t slice_ns_ = 0;
    std::vector<NodeSeries> series_;  // by number
    bool banded_ = false;
    std::size_t nodes_ = 0;
    std::vector<NodeSlice> sum_;
    std::vector<Spread> byte_spread_, operation_spread_;
};

}  // namespace sonde::results
