// SPDX-License-Identifier: Apache-2.0
// Totals of a phase from the meters of streams, of one node or joined over nodes. Pure arithmetic.
#pragma once

#include "meters/stream_meter.hpp"
#include "results/amount_histogram.hpp"
#include "results/node_series.hpp"
#include "results/targets.hpp"
#include "results/training.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sonde::results {

/// One row of the table of tasks. Times in ns since the start of the phase (root's clock).
struct TaskRow {
    int task = 0, stream = 0, node = 0;
    std::uint64_t bytes = 0, operations = 0;
    std::int64_t start_ns = 0, end_ns = 0;                                  ///< first open (or transfer) to last close
    std::int64_t open_ns = 0, transfer_ns = 0, fsync_ns = 0, close_ns = 0;  ///< time in each part
    std::int64_t transfer_start_ns = 0, transfer_end_ns = 0;
    std::uint64_t user_ns = 0, system_ns = 0;
    std::uint64_t next_operation = 0;                             ///< operations of the first pass: coverage
    std::uint64_t stonewall_bytes = 0, stonewall_operations = 0;  ///< amounts at the deadline
};

/// One slice over the streams of all tasks.
struct SliceSum {
    std::uint64_t bytes = 0, operations = 0;
    int active_streams = 0;
    AmountHistogram stream_bytes;  ///< bytes of streams that were active during the whole slice
};

struct StreamSum {
    std::uint64_t bytes = 0;
    std::vector<SliceSum> slices;
};

/// Totals of one phase on some nodes. merge() is associative.
struct Totals {
    std::uint64_t planned_bytes = 0, planned_operations = 0;
    std::array<std::uint64_t, 2> bytes{}, operations{};  ///< read, write
    std::uint64_t short_operations = 0, failed_operations = 0, retries = 0, checked_bytes = 0, mismatch_count = 0;
    std::uint64_t file_operations = 0;                                                ///< on names
    std::uint64_t listed_entries = 0;                                                 ///< readdir, walk: names found
    std::uint64_t listed_directories = 0, examined_entries = 0, matched_entries = 0;  ///< walk: of these
    std::uint64_t stonewalled_streams = 0;  ///< streams that the deadline stopped
    std::int64_t longest_verify_ns = 0;     ///< longest of one stream
    std::uint64_t stonewall_bytes = 0, stonewall_operations = 0;
    std::array<meters::WorkInterval, meters::parts> parts_of_work;
    std::vector<meters::Histogram> latency_histograms = std::vector<meters::Histogram>(meters::kinds);
    std::int64_t slice_ns = 0;
    std::array<StreamSum, 2> sums_of_streams;  ///< of a duplex phase; other phases have the first only
    TrainingTotals training;                   ///< op train
    NodeSeriesSet node_series;
    TargetTotals targets;  ///< empty where no layout is known
    std::vector<TaskRow> rows;

    /// Adds one stream. `offset_ns` = this node's phase time + offset is the root's phase time.
    void add(meters::StreamMeter& meter, int node, int max_slices, std::int64_t slice_ns, std::uint32_t doublings,
             std::int64_t offset_ns);
    void merge(const Totals& other);
    std::string pack() const;
    static Totals unpack(const std::string& text);
};

/// The sum of both streams, slice by slice.
std::vector<SliceSum> sum_slices_of_streams(const Totals& totals);

inline double seconds(std::int64_t ns) {
    return static_cast<double>(ns) / 1e9;
}
inline double seconds(std::uint64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

}  // namespace sonde::results
