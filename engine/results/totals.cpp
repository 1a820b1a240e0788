// SPDX-License-Identifier: Apache-2.0
#include "results/totals.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sonde::results {
namespace {

using meters::Histogram;
using meters::WorkInterval;
using nlohmann::json;

void widen_interval(WorkInterval& into, const WorkInterval& from, std::int64_t offset) {
    if (from.first_start_ns < 0) {
        return;
    }
    const std::int64_t start = from.first_start_ns + offset;
    const std::int64_t end = from.last_end_ns + offset;
    const bool first = into.last_end_ns < 0 && into.first_start_ns < 0;
    into.first_start_ns = first ? start : std::min(into.first_start_ns, start);
    into.last_end_ns = first ? end : std::max(into.last_end_ns, end);
    into.sum_ns += from.sum_ns;
}

TaskRow make_task_row(const meters::StreamMeter& meter, int node, std::int64_t offset) {
    TaskRow row;
    row.task = meter.task;
    row.stream = meter.duplex_stream;
    row.node = node;
    row.bytes = meter.bytes[0] + meter.bytes[1];
    row.operations = meter.operations[0] + meter.operations[1] + meter.file_operations;
    WorkInterval busy;
    for (const WorkInterval& part : meter.parts_of_work) {
        widen_interval(busy, part, offset);
    }
    row.start_ns = std::max<std::int64_t>(0, busy.first_start_ns);
    row.end_ns = std::max<std::int64_t>(row.start_ns, busy.last_end_ns);
    row.open_ns = meter.parts_of_work[meters::part_open].sum_ns;
    row.transfer_ns = meter.parts_of_work[meters::part_transfer].sum_ns;
    row.fsync_ns = meter.parts_of_work[meters::part_fsync].sum_ns;
    row.close_ns = meter.parts_of_work[meters::part_close].sum_ns;
    row.transfer_start_ns =
        std::max<std::int64_t>(0, meter.parts_of_work[meters::part_transfer].first_start_ns + offset);
    row.transfer_end_ns = std::max<std::int64_t>(0, meter.parts_of_work[meters::part_transfer].last_end_ns + offset);
    row.user_ns = meter.user_ns;
    row.system_ns = meter.system_ns;
    row.next_operation = meter.next_operation;
    row.stonewall_bytes = meter.stonewall_bytes;
    row.stonewall_operations = meter.stonewall_operations;
    return row;
}

void add_slice(SliceSum& into, const SliceSum& from) {
    into.bytes += from.bytes;
    into.operations += from.operations;
    into.active_streams += from.active_streams;
    for (const auto& [bucket, count] : from.stream_bytes) {
        into.stream_bytes[bucket] += count;
    }
}

/// Adds the counters that a stream and Totals have in common.
template <class Counted>
void add_counts(Totals& into, const Counted& from) {
    into.planned_bytes += from.planned_bytes;
    into.planned_operations += from.planned_operations;
    for (unsigned i = 0; i < 2; ++i) {
        into.bytes[i] += from.bytes[i];
        into.operations[i] += from.operations[i];
    }
    into.short_operations += from.short_operations;
    into.failed_operations += from.failed_operations;
    into.retries += from.retries;
    into.checked_bytes += from.checked_bytes;
    into.mismatch_count += from.mismatch_count;
    into.file_operations += from.file_operations;
    into.listed_entries += from.listed_entries;
    into.listed_directories += from.listed_directories;
    into.examined_entries += from.examined_entries;
    into.matched_entries += from.matched_entries;
    into.stonewall_bytes += from.stonewall_bytes;
    into.stonewall_operations += from.stonewall_operations;
}

void merge_stream(StreamSum& into, const StreamSum& from) {
    into.bytes += from.bytes;
    into.slices.resize(std::max(into.slices.size(), from.slices.size()));
    for (std::size_t i = 0; i < from.slices.size(); ++i) {
        add_slice(into.slices[i], from.slices[i]);
    }
}

}  // namespace

void Totals::add(meters::StreamMeter& meter, int node, int max_slices, std::int64_t slice_width,
                 std::uint32_t doublings, std::int64_t offset_ns) {
    add_counts(*this, meter);
    longest_verify_ns = std::max(longest_verify_ns, meter.verify_ns);
    training.add(meter.training);
    stonewalled_streams += meter.deadline_passed ? 1U : 0U;
    for (unsigned i = 0; i < meters::parts; ++i) {
        widen_interval(parts_of_work[i], meter.parts_of_work[i], offset_ns);
    }
    for (unsigned i = 0; i < meters::kinds; ++i) {
        if (const Histogram* values = meter.find_histogram(i)) {
            latency_histograms[i].merge(*values);
        }
    }
    slice_ns = slice_width;
    const TaskRow row = make_task_row(meter, node, offset_ns);
    rows.push_back(row);

    std::span<std::uint64_t> moved(meter.slice_bytes(), static_cast<std::size_t>(max_slices));
    std::span<std::uint64_t> calls(meter.slice_operations(max_slices), static_cast<std::size_t>(max_slices));
    std::uint32_t used = meter.slices_used;
    for (std::uint32_t have = meter.slices_doublings; have < doublings; ++have) {
        meters::Slices::merge_pairs(moved);
        meters::Slices::merge_pairs(calls);
        used = (used + 1) / 2;
    }
    node_series.add({node, row.transfer_start_ns, row.transfer_end_ns, slice_width, max_slices, moved.data(),
                     calls.data(), std::min<std::size_t>(used, moved.size())});
    StreamSum& sum = sums_of_streams[static_cast<std::size_t>(meter.duplex_stream)];
    sum.bytes += row.bytes;
    // A stream is active in every slice that its transfer overlaps; its rate counts in complete slices only.
    const auto last =
        static_cast<std::size_t>(row.transfer_end_ns > 0 ? (row.transfer_end_ns - 1) / slice_width + 1 : 0);
    sum.slices.resize(std::max({sum.slices.size(), static_cast<std::size_t>(used),
                                std::min<std::size_t>(last, static_cast<std::size_t>(max_slices))}));
    for (std::size_t i = 0; i < sum.slices.size(); ++i) {
        const auto from = static_cast<std::int64_t>(i) * slice_width;
        const std::int64_t to = from + slice_width;
        SliceSum& slice = sum.slices[i];
        const std::uint64_t slice_bytes = i < used ? moved[i] : 0;
        slice.bytes += slice_bytes;
        slice.operations += i < used ? calls[i] : 0;
        if (row.transfer_start_ns < to && row.transfer_end_ns > from) {
            ++slice.active_streams;
        }
        if (row.transfer_start_ns <= from && row.transfer_end_ns >= to) {
            ++slice.stream_bytes[static_cast<std::uint32_t>(Histogram::get_bucket_index(slice_bytes))];
        }
    }
}

void Totals::merge(const Totals& other) {
    add_counts(*this, other);
    longest_verify_ns = std::max(longest_verify_ns, other.longest_verify_ns);
    training.merge(other.training);
    stonewalled_streams += other.stonewalled_streams;
    for (unsigned i = 0; i < 2; ++i) {
        merge_stream(sums_of_streams[i], other.sums_of_streams[i]);
    }
    for (unsigned i = 0; i < meters::parts; ++i) {
        widen_interval(parts_of_work[i], other.parts_of_work[i], 0);
    }
    for (unsigned i = 0; i < meters::kinds; ++i) {
        latency_histograms[i].merge(other.latency_histograms[i]);
    }
    slice_ns = std::max(slice_ns, other.slice_ns);
    node_series.merge(other.node_series);
    targets.merge(other.targets);
    rows.insert(rows.end(), other.rows.begin(), other.rows.end());
}

std::vector<SliceSum> sum_slices_of_streams(const Totals& totals) {
    std::vector<SliceSum> sum(
        std::max(totals.sums_of_streams[0].slices.size(), totals.sums_of_streams[1].slices.size()));
    for (const StreamSum& stream : totals.sums_of_streams) {
        for (std::size_t i = 0; i < stream.slices.size(); ++i) {
            add_slice(sum[i], stream.slices[i]);
        }
    }
    return sum;
}

std::string Totals::pack() const {
    json out;
    out["n"] = {planned_bytes,       planned_operations, bytes[0],         bytes[1],
                operations[0],       operations[1],      short_operations, failed_operations,
                checked_bytes,       mismatch_count,     stonewall_bytes,  stonewall_operations,
                stonewalled_streams, file_operations,    listed_entries,   listed_directories,
                examined_entries,    matched_entries,    retries};
    out["v"] = longest_verify_ns;
    out["s"] = slice_ns;
    for (const WorkInterval& interval : parts_of_work) {
        out["p"].push_back({interval.first_start_ns, interval.last_end_ns, interval.sum_ns});
    }
    for (const Histogram& h : latency_histograms) {
        json counts = json::array();
        for (std::size_t i = 0; i < Histogram::buckets; ++i) {
            if (h.counts[i] != 0) {
                counts.push_back({i, h.counts[i]});
            }
        }
        out["h"].push_back({h.sum_ns, h.min_ns, h.max_ns, h.overflow, counts});
    }
    for (const StreamSum& sum : sums_of_streams) {
        json slices = json::array();
        for (const SliceSum& slice : sum.slices) {
            json rates = json::array();
            for (const auto& [bucket, count] : slice.stream_bytes) {
                rates.push_back({bucket, count});
            }
            slices.push_back({slice.bytes, slice.operations, slice.active_streams, rates});
        }
        out["l"].push_back({sum.bytes, slices});
    }
    out["a"] = training.pack();
    out["o"] = node_series.pack();
    if (targets.opened_files > 0) {
        out["t"] = targets.pack();
    }
    out["r"] = json::array();
    for (const TaskRow& r : rows) {
        out["r"].push_back({r.task, r.stream, r.node, r.bytes, r.operations, r.start_ns, r.end_ns, r.open_ns,
                            r.transfer_ns, r.fsync_ns, r.close_ns, r.transfer_start_ns, r.transfer_end_ns, r.user_ns,
                            r.system_ns, r.next_operation, r.stonewall_bytes, r.stonewall_operations});
    }
    const std::vector<std::uint8_t> packed = json::to_cbor(out);
    return {packed.begin(), packed.end()};
}

Totals Totals::unpack(const std::string& text) {
    const json in = json::from_cbor(text.begin(), text.end());
    Totals totals;
    const auto n = in.at("n").get<std::vector<std::uint64_t>>();
    totals.planned_bytes = n.at(0);
    totals.planned_operations = n.at(1);
    totals.bytes = {n.at(2), n.at(3)};
    totals.operations = {n.at(4), n.at(5)};
    totals.short_operations = n.at(6);
    totals.failed_operations = n.at(7);
    totals.checked_bytes = n.at(8);
    totals.mismatch_count = n.at(9);
    totals.stonewall_bytes = n.at(10);
    totals.stonewall_operations = n.at(11);
    totals.stonewalled_streams = n.at(12);
    totals.file_operations = n.at(13);
    totals.listed_entries = n.at(14);
    totals.listed_directories = n.at(15);
    totals.examined_entries = n.at(16);
    totals.matched_entries = n.at(17);
    totals.retries = n.at(18);
    totals.longest_verify_ns = in.at("v");
    totals.slice_ns = in.at("s");
    for (unsigned i = 0; i < meters::parts; ++i) {
        const json& p = in.at("p").at(i);
        totals.parts_of_work[i] = {p.at(0), p.at(1), p.at(2)};
    }
    for (unsigned i = 0; i < meters::kinds; ++i) {
        const json& h = in.at("h").at(i);
        Histogram& into = totals.latency_histograms[i];
        into.sum_ns = h.at(0);
        into.min_ns = h.at(1);
        into.max_ns = h.at(2);
        into.overflow = h.at(3);
        for (const json& pair : h.at(4)) {
            into.counts[pair.at(0).get<std::size_t>()] = pair.at(1);
        }
    }
    for (std::size_t i = 0; i < 2; ++i) {
        const json& l = in.at("l").at(i);
        totals.sums_of_streams[i].bytes = l.at(0);
        for (const json& s : l.at(1)) {
            SliceSum slice{s.at(0), s.at(1), s.at(2), {}};
            for (const json& rate : s.at(3)) {
                slice.stream_bytes[rate.at(0)] = rate.at(1);
            }
            totals.sums_of_streams[i].slices.push_back(std::move(slice));
        }
    }
    totals.training = TrainingTotals::unpack(in.at("a"));
    totals.node_series = NodeSeriesSet::unpack(in.at("o"));
    if (const auto targets = in.find("t"); targets != in.end()) {
        totals.targets = TargetTotals::unpack(*targets);
    }
    for (const json& r : in.at("r")) {
        totals.rows.push_back({r.at(0), r.at(1), r.at(2), r.at(3), r.at(4), r.at(5), r.at(6), r.at(7), r.at(8), r.at(9),
                               r.at(10), r.at(11), r.at(12), r.at(13), r.at(14), r.at(15), r.at(16), r.at(17)});
    }
    return totals;
}

}  // namespace sonde::results
