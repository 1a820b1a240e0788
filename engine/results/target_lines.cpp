// SPDX-License-Identifier: Apache-2.0
#include "results/target_lines.hpp"

#include "records/text.hpp"

#include <algorithm>

namespace sonde::results {
namespace {

using meters::TargetCell;
using nlohmann::ordered_json;

// About 1 to 2 MB of text for any number of targets.
constexpr std::size_t max_slices_stored = 65'536;

/// Joins 2^`fold` neighboring slices.
std::vector<TargetCell> merge_target_slices(const std::vector<TargetCell>& slices, unsigned fold) {
    std::vector<TargetCell> out((slices.size() + (std::size_t{1} << fold) - 1) >> fold);
    for (std::size_t i = 0; i < slices.size(); ++i) {
        out[i >> fold].add(slices[i]);
    }
    return out;
}

unsigned choose_target_merge_factor(const TargetTotals& targets) {
    std::size_t longest = 0;
    std::size_t lines = 0;
    for (const auto& [name, both] : targets.statistics_by_target) {
        for (const TargetStatistics& counts : both) {
            longest = std::max(longest, counts.slices.size());
            lines += counts.is_used() ? 1 : 0;
        }
    }
    unsigned fold = 0;
    while (longest > 1 && lines * ((longest + (std::size_t{1} << fold) - 1) >> fold) > max_slices_stored) {
        ++fold;
    }
    return fold;
}

ordered_json make_row(const std::string& name, unsigned kind, const TargetStatistics& counts) {
    const TargetCell sum = counts.sum_slices();
    ordered_json row{records::to_json_text(name),    meters::kind_names[kind], sum.bytes,
                     sum.single_ops + sum.split_ops, sum.single_ops,           sum.single_ns};
    for (const double q : {0.5, 0.9, 0.99}) {
        row.push_back(sum.single_ops > 0 ? ordered_json(counts.quantile(q)) : ordered_json(nullptr));
    }
    row.push_back(sum.single_ops > 0 ? ordered_json(counts.longest_ns) : ordered_json(nullptr));
    return row;
}

ordered_json make_series(const std::string& name, unsigned kind, double slice_s,
                         const std::vector<TargetCell>& slices) {
    ordered_json line{{"scope", "target"},
                      {"target", records::to_json_text(name)},
                      {"kind", meters::kind_names[kind]},
                      {"slice_s", slice_s}};
    for (const char* member : {"bytes", "ops", "single_ops", "single_ns"}) {
        line[member] = ordered_json::array();
    }
    for (const TargetCell& slice : slices) {
        line["bytes"].push_back(slice.bytes);
        line["ops"].push_back(slice.single_ops + slice.split_ops);
        line["single_ops"].push_back(slice.single_ops);
        line["single_ns"].push_back(slice.single_ns);
    }
    return line;
}

}  // namespace

ordered_json make_target_line(const Totals& totals) {
    const TargetTotals& targets = totals.targets;
    if (targets.statistics_by_target.empty()) {
        return nullptr;
    }
    ordered_json line{
        {"files", targets.opened_files},
        {"known_files", targets.known_layouts},
        {"bytes", totals.bytes[0] + totals.bytes[1]},
        {"known_bytes", targets.sum_bytes(0) + targets.sum_bytes(1)},
        {"columns",
         {"target", "kind", "bytes", "ops", "single_ops", "single_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"}},
        {"rows", ordered_json::array()}};
    for (const auto& [name, both] : targets.statistics_by_target) {
        for (unsigned kind = 0; kind < 2; ++kind) {
            if (both[kind].is_used()) {
                line["rows"].push_back(make_row(name, kind, both[kind]));
            }
        }
    }
    return line;
}

std::vector<ordered_json> make_target_series_lines(const Totals& totals) {
    const unsigned fold = choose_target_merge_factor(totals.targets);
    std::vector<ordered_json> lines;
    for (const auto& [name, both] : totals.targets.statistics_by_target) {
        for (unsigned kind = 0; kind < 2; ++kind) {
            if (both[kind].is_used()) {
                lines.push_back(make_series(name, kind, seconds(totals.targets.slice_ns << fold),
                                            merge_target_slices(both[kind].slices, fold)));
            }
        }
    }
    return lines;
}

}  // namespace sonde::results
