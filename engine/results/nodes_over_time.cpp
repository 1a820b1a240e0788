// SPDX-License-Identifier: Apache-2.0
#include "results/nodes_over_time.hpp"

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
        into[i].active += from[i].active;
    }
}

void add_spreads(std::vector<Spread>& into, const std::vector<Spread>& from) {
    into.resize(std::max(into.size(), from.size()));
    for (std::size_t i = 0; i < from.size(); ++i) {
        for (const auto& [bucket, count] : from[i]) {
            into[i][bucket] += count;
        }
    }
}

// Nodes of a phase all move bytes or none does, so that one order serves both; the number makes it a total one.
std::tuple<double, double, int> rank_of(const NodeSeries& node) {
    const double took = std::max(node.seconds(), 1e-9);
    return {static_cast<double>(node.bytes) / took, static_cast<double>(node.operations) / took, node.node};
}

json pack_slices(const std::vector<NodeSlice>& slices) {
    json out = json::array();
    for (const NodeSlice& slice : slices) {
        out.insert(out.end(), {slice.bytes, slice.operations, slice.active});
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

json pack_spreads(const std::vector<Spread>& spreads) {
    json out = json::array();
    for (const Spread& spread : spreads) {
        json flat = json::array();
        for (const auto& [bucket, count] : spread) {
            flat.insert(flat.end(), {bucket, count});
        }
        out.push_back(std::move(flat));
    }
    return out;
}

std::vector<Spread> unpack_spreads(const json& in) {
    std::vector<Spread> spreads(in.size());
    for (std::size_t at = 0; at < in.size(); ++at) {
        for (std::size_t i = 0; i + 1 < in[at].size(); i += 2) {
            spreads[at][in[at][i]] = in[at][i + 1];
        }
    }
    return spreads;
}

/// The numbers of the first so many.
std::vector<int> numbers(const std::vector<const NodeSeries*>& nodes) {
    std::vector<int> out;
    for (const NodeSeries* node : nodes) {
        out.push_back(node->node);
    }
    return out;
}

}  // namespace

NodeSeries& NodesOverTime::of(int node) {
    const auto place = std::lower_bound(series_.begin(), series_.end(), node,
                                        [](const NodeSeries& one, int number) { return one.node < number; });
    if (place != series_.end() && place->node == node) {
        return *place;
    }
    NodeSeries fresh;
    fresh.node = node;
    fresh.start_ns = INT64_MAX;
    return *series_.insert(place, std::move(fresh));
}

void NodesOverTime::add(const StreamSlices& stream) {
    // By what the plan allows, not by what was used: the same on all nodes.
    unsigned fold = 0;
    while ((stream.max_slices >> fold) > most_slices) {
        ++fold;
    }
    slice_ns_ = stream.slice_ns << fold;
    NodeSeries& node = of(stream.node);
    if (stream.end_ns > stream.start_ns) {
        node.start_ns = std::min(node.start_ns, stream.start_ns);
        node.end_ns = std::max(node.end_ns, stream.end_ns);
    }
    // A stream is active in a slice that its transfer touches, also where it moved nothing.
    const std::int64_t touched = stream.end_ns > 0 ? (stream.end_ns - 1) / slice_ns_ + 1 : 0;
    const auto most = static_cast<std::size_t>(std::max(1, stream.max_slices >> fold));
    const std::size_t used = std::min(most, (stream.used + (std::size_t{1} << fold) - 1) >> fold);
    node.slices.resize(std::max({node.slices.size(), used, std::min(most, static_cast<std::size_t>(touched))}));
    for (std::size_t i = 0; i < stream.used; ++i) {
        NodeSlice& slice = node.slices[std::min(i >> fold, most - 1)];
        slice.bytes += stream.bytes[i];
        slice.operations += stream.calls[i];
        node.bytes += stream.bytes[i];
        node.operations += stream.calls[i];
    }
    if (stream.end_ns > stream.start_ns) {
        const auto first = static_cast<std::size_t>(stream.start_ns / slice_ns_);
        for (std::size_t i = first; i < std::min(node.slices.size(), static_cast<std::size_t>(touched)); ++i) {
            ++node.slices[i].active;
        }
    }
}

void NodesOverTime::band() {
    if (banded_) {
        return;
    }
    banded_ = true;
    nodes_ = series_.size();
    for (const NodeSeries& node : series_) {
        add_slices(sum_, node.slices);
        byte_spread_.resize(std::max(byte_spread_.size(), node.slices.size()));
        operation_spread_.resize(byte_spread_.size());
        for (std::size_t i = 0; i < node.slices.size(); ++i) {
            const auto from = static_cast<std::int64_t>(i) * slice_ns_;
            if (node.start_ns <= from && node.end_ns >= from + slice_ns_) {
                ++byte_spread_[i][static_cast<std::uint32_t>(Histogram::bucket_of(node.slices[i].bytes))];
                ++operation_spread_[i][static_cast<std::uint32_t>(Histogram::bucket_of(node.slices[i].operations))];
            }
        }
    }
    keep_extremes();
}

std::vector<const NodeSeries*> NodesOverTime::by_rate() const {
    std::vector<const NodeSeries*> order;
    for (const NodeSeries& node : series_) {
        order.push_back(&node);
    }
    std::sort(order.begin(), order.end(), [](auto a, auto b) { return rank_of(*a) < rank_of(*b); });
    return order;
}

std::vector<int> NodesOverTime::slowest() const {
    std::vector<const NodeSeries*> order = by_rate();
    order.resize(std::min(order.size(), extremes));
    return numbers(order);
}

std::vector<int> NodesOverTime::fastest() const {
    std::vector<const NodeSeries*> order = by_rate();
    std::reverse(order.begin(), order.end());
    order.resize(std::min(order.size() - std::min(order.size(), extremes), extremes));
    return numbers(order);
}

void NodesOverTime::keep_extremes() {
    if (series_.size() <= 2 * extremes) {
        return;
    }
    std::vector<int> kept = slowest();
    const std::vector<int> best = fastest();
    kept.insert(kept.end(), best.begin(), best.end());
    std::erase_if(series_, [&kept](const NodeSeries& node) {
        return std::find(kept.begin(), kept.end(), node.node) == kept.end();
    });
}

void NodesOverTime::bound() {
    if (series_.size() > most_exact) {
        band();
    }
}

void NodesOverTime::join(const NodesOverTime& other) {
    slice_ns_ = std::max(slice_ns_, other.slice_ns_);
    if (banded_ || other.banded_ || series_.size() + other.series_.size() > most_exact) {
        NodesOverTime theirs = other;
        theirs.slice_ns_ = slice_ns_;
        band();
        theirs.band();
        nodes_ += theirs.nodes_;
        add_slices(sum_, theirs.sum_);
        add_spreads(byte_spread_, theirs.byte_spread_);
        add_spreads(operation_spread_, theirs.operation_spread_);
        std::move(theirs.series_.begin(), theirs.series_.end(), std::back_inserter(series_));
    } else {
        series_.insert(series_.end(), other.series_.begin(), other.series_.end());
    }
    std::sort(series_.begin(), series_.end(), [](const NodeSeries& a, const NodeSeries& b) { return a.node < b.node; });
    if (banded_) {
        keep_extremes();
    }
}

json NodesOverTime::pack() const {
    json out{{"w", slice_ns_}, {"s", json::array()}};
    for (const NodeSeries& node : series_) {
        out["s"].push_back(
            {node.node, node.bytes, node.operations, node.start_ns, node.end_ns, pack_slices(node.slices)});
    }
    if (banded_) {
        out["b"] = {nodes_, pack_slices(sum_), pack_spreads(byte_spread_), pack_spreads(operation_spread_)};
    }
    return out;
}

NodesOverTime NodesOverTime::unpack(const json& packed) {
    NodesOverTime nodes;
    nodes.slice_ns_ = packed.at("w");
    for (const json& s : packed.at("s")) {
        nodes.series_.push_back({s.at(0), s.at(1), s.at(2), s.at(3), s.at(4), unpack_slices(s.at(5))});
    }
    if (const auto banded = packed.find("b"); banded != packed.end()) {
        nodes.banded_ = true;
        nodes.nodes_ = banded->at(0);
        nodes.sum_ = unpack_slices(banded->at(1));
        nodes.byte_spread_ = unpack_spreads(banded->at(2));
        nodes.operation_spread_ = unpack_spreads(banded->at(3));
    }
    return nodes;
}

}  // namespace sonde::results
