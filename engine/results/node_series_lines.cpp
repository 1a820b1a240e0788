// SPDX-License-Identifier: Apache-2.0
#include "results/node_series_lines.hpp"

#include "results/nodes_over_time.hpp"

#include <algorithm>

namespace sonde::results {
namespace {

using nlohmann::ordered_json;

// A megabyte of text or so, whatever the number of nodes.
constexpr std::size_t most_values = 65'536;

/// Neighboring slices as one, 2^`fold` of them. Active are as many as were in the busiest of them.
std::vector<NodeSlice> folded(const std::vector<NodeSlice>& slices, unsigned fold) {
    std::vector<NodeSlice> out((slices.size() + (std::size_t{1} << fold) - 1) >> fold);
    for (std::size_t i = 0; i < slices.size(); ++i) {
        NodeSlice& into = out[i >> fold];
        into.bytes += slices[i].bytes;
        into.operations += slices[i].operations;
        into.active = std::max(into.active, slices[i].active);
    }
    return out;
}

unsigned fold_for(const std::vector<NodeSeries>& nodes) {
    std::size_t longest = 0;
    for (const NodeSeries& node : nodes) {
        longest = std::max(longest, node.slices.size());
    }
    unsigned fold = 0;
    while (longest > 1 && nodes.size() * ((longest + (std::size_t{1} << fold) - 1) >> fold) > most_values) {
        ++fold;
    }
    return fold;
}

void put_slices(ordered_json& line, std::int64_t slice_ns, const std::vector<NodeSlice>& slices) {
    line["slice_s"] = seconds(slice_ns);
    for (const char* name : {"bytes", "ops", "active"}) {
        line[name] = ordered_json::array();
    }
    for (const NodeSlice& slice : slices) {
        line["bytes"].push_back(slice.bytes);
        line["ops"].push_back(slice.operations);
        line["active"].push_back(slice.active);
    }
}

bool among(const std::vector<int>& numbers, int node) {
    return std::find(numbers.begin(), numbers.end(), node) != numbers.end();
}

}  // namespace

std::vector<ordered_json> node_series_lines(const Totals& totals) {
    NodesOverTime nodes = totals.nodes;
    nodes.bound();
    std::vector<ordered_json> lines;
    if (nodes.nodes() < 2) {
        return lines;
    }
    if (nodes.banded()) {
        ordered_json line{{"scope", "nodes"}, {"nodes", nodes.nodes()}};
        put_slices(line, nodes.slice_ns(), nodes.sum());
        line["node_rate"] = spread_json(nodes.byte_spread(), nodes.slice_ns());
        line["node_ops_rate"] = spread_json(nodes.operation_spread(), nodes.slice_ns());
        lines.push_back(std::move(line));
    }
    const std::vector<int> slowest = nodes.slowest();
    const unsigned fold = fold_for(nodes.series());
    for (const NodeSeries& node : nodes.series()) {
        ordered_json line{{"scope", "node"}, {"node", node.node}};
        if (nodes.banded()) {
            line["extreme"] = among(slowest, node.node) ? "slowest" : "fastest";
        }
        put_slices(line, nodes.slice_ns() << fold, folded(node.slices, fold));
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace sonde::results
