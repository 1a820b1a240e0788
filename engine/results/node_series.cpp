// SPDX-License-Identifier: Apache-2.0
#include "results/node_series.hpp"

#include "meters/histogram.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sonde::results {
namespace {

using meters::Histogram;
using nlohmann::json;

void add_slices(std::vector<NodeSlice>& into, const std::vector<NodeSlice>& from) {
    into.resize(std::max(into.size(), from.size()));
    for (std::size_t i = 0; i < from.size(); ++i) {
        into[i].bytes += from[i].bytes;
        into[i].operations += from[i].operations;
        into[i].active_streams += from[i].active_streams;
    }
}

void add_spreads(std::vector<AmountHistogram>& into, const std::vector<AmountHistogram>& from) {
    into.resize(std::max(into.size(), from.size()));
    for (std::size_t i = 0; i < from.size(); ++i) {
        for (const auto& [bucket, count] : from[i]) {
            into[i][bucket] += count;
        }
    }
}

// Either all nodes move bytes or none, so one order suffices; the node number breaks ties.
std::tuple<double, double, int> rate_order_key(const NodeSeries& node) {
    const double took = std::max(node.seconds(), 1e-9);
    return {static_cast<double>(node.bytes) / took, static_cast<double>(node.operations) / took, node.node};
}

json pack_slices(const std::vector<NodeSlice>& slices) {
    json out = json::array();
    for (const NodeSlice& slice : slices) {
        out.insert(out.end(), {slice.bytes, slice.operations, slice.active_streams});
    }
    return out;
}

std::vector<NodeSlice> unpack_slices(const json& in) {
    std::vector<NodeSlice> slices;
    slices.reserve(in.size() / 3);
    for (std::size_t i = 0; i + 2 < in.size(); i += 3) {
        slices.push_back({in[i], in[i + 1], in[i + 2]});
    }
    return slices;
}

json pack_spreads(const std::vector<AmountHistogram>& spreads) {
    json out = json::array();
    for (const AmountHistogram& spread : spreads) {
        json flat = json::array();
        for (const auto& [bucket, count] : spread) {
            flat.insert(flat.end(), {bucket, count});
        }
        out.push_back(std::move(flat));
    }
    return out;
}

std::vector<AmountHistogram> unpack_spreads(const json& in) {
    std::vector<AmountHistogram> spreads(in.size());
    for (std::size_t index = 0; index < in.size(); ++index) {
        for (std::size_t i = 0; i + 1 < in[index].size(); i += 2) {
            spreads[index][in[index][i]] = in[index][i + 1];
        }
    }
    return spreads;
}

/// The numbers of the first nodes.
std::vector<int> list_node_numbers(const std::vector<const NodeSeries*>& nodes) {
    std::vector<int> out;
    for (const NodeSeries* node : nodes) {
        out.push_back(node->node);
    }
    return out;
}

}  // namespace

NodeSeries& NodeSeriesSet::get_or_add_series(int node) {
    const auto position = std::lower_bound(series_.begin(), series_.end(), node,
                                           [](const NodeSeries& series, int number) { return series.node < number; });
    if (position != series_.end() && position->node == node) {
        return *position;
    }
    NodeSeries fresh;
    fresh.node = node;
    fresh.start_ns = INT64_MAX;
    return *series_.insert(position, std::move(fresh));
}

void NodeSeriesSet::add(const StreamSlices& stream) {
    // Depends on the plan, not on the used slices, so that it is equal on all nodes.
    unsigned fold = 0;
    while ((stream.max_slices >> fold) > max_slices_stored) {
        ++fold;
    }
    slice_ns_ = stream.slice_ns << fold;
    NodeSeries& node = get_or_add_series(stream.node);
    if (stream.end_ns > stream.start_ns) {
        node.start_ns = std::min(node.start_ns, stream.start_ns);
        node.end_ns = std::max(node.end_ns, stream.end_ns);
    }
    // A stream is active in every slice that its transfer overlaps, even without bytes.
    const std::int64_t touched = stream.end_ns > 0 ? (stream.end_ns - 1) / slice_ns_ + 1 : 0;
    const auto most = static_cast<std::size_t>(std::max(1, stream.max_slices >> fold));
    const std::size_t used = std::min(most, (stream.slice_count + (std::size_t{1} << fold) - 1) >> fold);
    node.slices.resize(std::max({node.slices.size(), used, std::min(most, static_cast<std::size_t>(touched))}));
    for (std::size_t i = 0; i < stream.slice_count; ++i) {
        NodeSlice& slice = node.slices[std::min(i >> fold, most - 1)];
        slice.bytes += stream.bytes[i];
        slice.operations += stream.calls[i];
        node.bytes += stream.bytes[i];
        node.operations += stream.calls[i];
    }
    if (stream.end_ns > stream.start_ns) {
        const auto first = static_cast<std::size_t>(stream.start_ns / slice_ns_);
        for (std::size_t i = first; i < std::min(node.slices.size(), static_cast<std::size_t>(touched)); ++i) {
            ++node.slices[i].active_streams;
        }
    }
}

void NodeSeriesSet::reduce_to_extremes() {
    if (is_reduced_) {
        return;
    }
    is_reduced_ = true;
    nodes_ = series_.size();
    for (const NodeSeries& node : series_) {
        add_slices(sum_, node.slices);
        byte_spread_.resize(std::max(byte_spread_.size(), node.slices.size()));
        operation_spread_.resize(byte_spread_.size());
        for (std::size_t i = 0; i < node.slices.size(); ++i) {
            const auto from = static_cast<std::int64_t>(i) * slice_ns_;
            if (node.start_ns <= from && node.end_ns >= from + slice_ns_) {
                ++byte_spread_[i][static_cast<std::uint32_t>(Histogram::get_bucket_index(node.slices[i].bytes))];
                ++operation_spread_[i]
                                   [static_cast<std::uint32_t>(Histogram::get_bucket_index(node.slices[i].operations))];
            }
        }
    }
    drop_all_but_extremes();
}

std::vector<const NodeSeries*> NodeSeriesSet::sort_by_rate() const {
    std::vector<const NodeSeries*> order;
    for (const NodeSeries& node : series_) {
        order.push_back(&node);
    }
    std::sort(order.begin(), order.end(), [](auto a, auto b) { return rate_order_key(*a) < rate_order_key(*b); });
    return order;
}

std::vector<int> NodeSeriesSet::slowest() const {
    std::vector<const NodeSeries*> order = sort_by_rate();
    order.resize(std::min(order.size(), extremes));
    return list_node_numbers(order);
}

std::vector<int> NodeSeriesSet::fastest() const {
    std::vector<const NodeSeries*> order = sort_by_rate();
    std::reverse(order.begin(), order.end());
    order.resize(std::min(order.size() - std::min(order.size(), extremes), extremes));
    return list_node_numbers(order);
}

void NodeSeriesSet::drop_all_but_extremes() {
    if (series_.size() <= 2 * extremes) {
        return;
    }
    std::vector<int> extremes_kept = slowest();
    const std::vector<int> best = fastest();
    extremes_kept.insert(extremes_kept.end(), best.begin(), best.end());
    std::erase_if(series_, [&extremes_kept](const NodeSeries& node) {
        return std::find(extremes_kept.begin(), extremes_kept.end(), node.node) == extremes_kept.end();
    });
}

void NodeSeriesSet::enforce_limit() {
    if (series_.size() > max_exact_nodes) {
        reduce_to_extremes();
    }
}

void NodeSeriesSet::merge(const NodeSeriesSet& other) {
    slice_ns_ = std::max(slice_ns_, other.slice_ns_);
    if (is_reduced_ || other.is_reduced_ || series_.size() + other.series_.size() > max_exact_nodes) {
        NodeSeriesSet reduced_other = other;
        reduced_other.slice_ns_ = slice_ns_;
        reduce_to_extremes();
        reduced_other.reduce_to_extremes();
        nodes_ += reduced_other.nodes_;
        add_slices(sum_, reduced_other.sum_);
        add_spreads(byte_spread_, reduced_other.byte_spread_);
        add_spreads(operation_spread_, reduced_other.operation_spread_);
        std::move(reduced_other.series_.begin(), reduced_other.series_.end(), std::back_inserter(series_));
    } else {
        series_.insert(series_.end(), other.series_.begin(), other.series_.end());
    }
    std::sort(series_.begin(), series_.end(), [](const NodeSeries& a, const NodeSeries& b) { return a.node < b.node; });
    if (is_reduced_) {
        drop_all_but_extremes();
    }
}

json NodeSeriesSet::pack() const {
    json out{{"w", slice_ns_}, {"s", json::array()}};
    for (const NodeSeries& node : series_) {
        out["s"].push_back(
            {node.node, node.bytes, node.operations, node.start_ns, node.end_ns, pack_slices(node.slices)});
    }
    if (is_reduced_) {
        out["b"] = {nodes_, pack_slices(sum_), pack_spreads(byte_spread_), pack_spreads(operation_spread_)};
    }
    return out;
}

NodeSeriesSet NodeSeriesSet::unpack(const json& packed) {
    NodeSeriesSet nodes;
    nodes.slice_ns_ = packed.at("w");
    for (const json& s : packed.at("s")) {
        nodes.series_.push_back({s.at(0), s.at(1), s.at(2), s.at(3), s.at(4), unpack_slices(s.at(5))});
    }
    if (const auto is_reduced = packed.find("b"); is_reduced != packed.end()) {
        nodes.is_reduced_ = true;
        nodes.nodes_ = is_reduced->at(0);
        nodes.sum_ = unpack_slices(is_reduced->at(1));
        nodes.byte_spread_ = unpack_spreads(is_reduced->at(2));
        nodes.operation_spread_ = unpack_spreads(is_reduced->at(3));
    }
    return nodes;
}

}  // namespace sonde::results
