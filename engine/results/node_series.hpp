// SPDX-License-Identifier: Apache-2.0
// Bytes and operations of each node over time, in bounded memory: up to 256 nodes have their own series. Of more nodes
// only the distribution in each slice and the series of the slowest and fastest nodes are stored.
#pragma once

#include "results/amount_histogram.hpp"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::results {

struct NodeSlice {
    std::uint64_t bytes = 0, operations = 0;
    int active_streams = 0;  ///< number of streams that transfer data
};

/// One node. Times in ns since the start of the phase (root's clock).
struct NodeSeries {
    int node = 0;
    std::uint64_t bytes = 0, operations = 0;
    std::int64_t start_ns = 0, end_ns = 0;  ///< of the transfers: first start to last end
    std::vector<NodeSlice> slices;

    double seconds() const { return static_cast<double>(end_ns - start_ns) / 1e9; }
};

/// Series of all nodes of a phase. merge() is associative; no node may be on both sides.
class NodeSeriesSet {
 public:
    static constexpr std::size_t max_exact_nodes = 256;  ///< largest number of nodes with their own series
    static constexpr std::size_t extremes = 8;           ///< of more nodes: number of slowest and of fastest nodes
    static constexpr std::int64_t max_slices_stored =
        512;  ///< series with more slices are stored with pairs of slices joined

    /// Bytes and calls of one stream in slices of `slice_ns`; at most `max_slices` slices.
    struct StreamSlices {
        int node = 0;
        std::int64_t start_ns = 0, end_ns = 0;  ///< of its transfer
        std::int64_t slice_ns = 0;
        int max_slices = 0;
        const std::uint64_t* bytes = nullptr;  ///< `used` values
        const std::uint64_t* calls = nullptr;
        std::size_t slice_count = 0;
    };
    void add(const StreamSlices& stream);
    void merge(const NodeSeriesSet& other);
    /// Reduces to the extremes when there are more nodes than the limit; merge() calls it.
    void enforce_limit();

    std::int64_t slice_ns() const { return slice_ns_; }
    /// Number of nodes that were added.
    std::size_t nodes() const { return is_reduced_ ? nodes_ : series_.size(); }
    /// Whether only the extremes have their own series.
    bool is_reduced() const { return is_reduced_; }
    /// By number; the extremes when is_reduced().
    const std::vector<NodeSeries>& series() const { return series_; }
    /// NodeSum of all nodes, slice by slice; only when is_reduced().
    const std::vector<NodeSlice>& sum() const { return sum_; }
    /// Distribution of bytes (operations) over the nodes that were active during the whole slice; only when
    /// is_reduced().
    const std::vector<AmountHistogram>& byte_spread() const { return byte_spread_; }
    const std::vector<AmountHistogram>& operation_spread() const { return operation_spread_; }
    /// Numbers of the slowest (fastest) nodes, slowest (fastest) first; only when is_reduced().
    std::vector<int> slowest() const;
    std::vector<int> fastest() const;

    nlohmann::json pack() const;
    static NodeSeriesSet unpack(const nlohmann::json& packed);

 private:
    NodeSeries& get_or_add_series(int node);
    void reduce_to_extremes();
    void drop_all_but_extremes();
    std::vector<const NodeSeries*> sort_by_rate() const;

    std::int64_t slice_ns_ = 0;
    std::vector<NodeSeries> series_;  // by number
    bool is_reduced_ = false;
    std::size_t nodes_ = 0;
    std::vector<NodeSlice> sum_;
    std::vector<AmountHistogram> byte_spread_, operation_spread_;
};

}  // namespace sonde::results
