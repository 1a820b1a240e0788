// SPDX-License-Identifier: Apache-2.0
#include "results/node_series_lines.hpp"

#include "results/node_series.hpp"

#include <algorithm>

namespace sonde::results {
namespace {

using nlohmann::ordered_json;

// About 1 MB of text for any number of nodes.
constexpr std::size_t max_values = 65'536;

/// Joins 2^`fold` neighboring slices. `active` is the largest value of them.
std::vector<NodeSlice> merge_slices(const std::vector<NodeSlice>& slices, unsigned fold) {
    std::vector<NodeSlice> out((slices.size() + (std::size_t{1} << fold) - 1) >> fold);
    for (std::size_t i = 0; i < slices.size(); ++i) {
        NodeSlice& into = out[i >> fold];
        into.bytes += slices[i].bytes;
        into.operations += slices[i].operations;
        into.active_streams = std::max(into.active_streams, slices[i].active_streams);
    }
    return out;
}

unsigned choose_merge_factor(const std::vector<NodeSeries>& nodes) {
    std::size_t longest = 0;
    for (const NodeSeries& node : nodes) {
        longest = std::max(longest, node.slices.size());
    }
    unsigned fold = 0;
    while (longest > 1 && nodes.size() * ((longest + (std::size_t{1} << fold) - 1) >> fold) > max_values) {
        ++fold;
    }
    return fold;
}

void add_slices_to(ordered_json& line, std::int64_t slice_ns, const std::vector<NodeSlice>& slices) {
    line["slice_s"] = seconds(slice_ns);
    for (const char* name : {"bytes", "ops", "active"}) {
        line[name] = ordered_json::array();
    }
    for (const NodeSlice& slice : slices) {
        line["bytes"].push_back(slice.bytes);
        line["ops"].push_back(slice.operations);
        line["active"].push_back(slice.active_streams);
    }
}

bool contains(const std::vector<int>& numbers, int node) {
    return std::find(numbers.begin(), numbers.end(), node) != numbers.end();
}

}  // namespace

std::vector<ordered_json> make_node_series_lines(const Totals& totals) {
    NodeSeriesSet nodes = totals.node_series;
    nodes.enforce_limit();
    std::vector<ordered_json> lines;
    if (nodes.nodes() < 2) {
        return lines;
    }
    if (nodes.is_reduced()) {
        ordered_json line{{"scope", "nodes"}, {"nodes", nodes.nodes()}};
        add_slices_to(line, nodes.slice_ns(), nodes.sum());
        line["node_rate"] = histograms_to_json(nodes.byte_spread(), nodes.slice_ns());
        line["node_ops_rate"] = histograms_to_json(nodes.operation_spread(), nodes.slice_ns());
        lines.push_back(std::move(line));
    }
    const std::vector<int> slowest = nodes.slowest();
    const unsigned fold = choose_merge_factor(nodes.series());
    for (const NodeSeries& node : nodes.series()) {
        ordered_json line{{"scope", "node"}, {"node", node.node}};
        if (nodes.is_reduced()) {
            line["extreme"] = contains(slowest, node.node) ? "slowest" : "fastest";
        }
        add_slices_to(line, nodes.slice_ns() << fold, merge_slices(node.slices, fold));
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace sonde::results
