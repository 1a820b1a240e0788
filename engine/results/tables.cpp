// SPDX-License-Identifier: Apache-2.0
#include "results/tables.hpp"

#include "records/text.hpp"

#include <algorithm>

namespace sonde::results {

using meters::Histogram;
using nlohmann::ordered_json;

ordered_json make_series_line(const Totals& totals) {
    ordered_json line{{"scope", "all"}, {"slice_s", seconds(totals.slice_ns)}};
    ordered_json bytes = ordered_json::array();
    ordered_json operations = ordered_json::array();
    ordered_json active = ordered_json::array();
    std::vector<AmountHistogram> rates;
    for (const SliceSum& slice : sum_slices_of_streams(totals)) {
        bytes.push_back(slice.bytes);
        operations.push_back(slice.operations);
        active.push_back(slice.active_streams);
        rates.push_back(slice.stream_bytes);
    }
    line["bytes"] = bytes;
    line["ops"] = operations;
    line["active"] = active;
    line["task_rate"] = histograms_to_json(rates, totals.slice_ns);
    return line;
}

std::vector<ordered_json> make_histogram_lines(const Totals& totals) {
    std::vector<ordered_json> lines;
    for (unsigned i = 0; i < meters::kinds; ++i) {
        const Histogram& h = totals.latency_histograms[i];
        if (h.count() == 0) {
            continue;
        }
        ordered_json buckets = ordered_json::array();
        for (const Histogram::Bucket& bucket : h.list_filled_buckets()) {
            buckets.push_back({bucket.low_ns, bucket.high_ns, bucket.count});
        }
        lines.push_back({{"kind", meters::kind_names[i]},
                         {"count", h.count()},
                         {"min_ns", h.min_ns},
                         {"max_ns", h.max_ns},
                         {"sum_ns", h.sum_ns},
                         {"overflow", h.overflow},
                         {"buckets", buckets}});
    }
    return lines;
}

std::vector<ordered_json> make_task_lines(const Totals& totals, const PhaseFacts& facts) {
    std::vector<TaskRow> rows = totals.rows;
    std::sort(rows.begin(), rows.end(), [](const TaskRow& a, const TaskRow& b) {
        return a.task != b.task ? a.task < b.task : a.stream < b.stream;
    });
    constexpr std::size_t chunk = 1024;
    std::vector<ordered_json> lines;
    for (std::size_t first = 0; first < rows.size(); first += chunk) {
        ordered_json line{{"first_task", rows[first].task},
                          {"columns",
                           {"task", "node", "stream", "bytes", "ops", "start_s", "end_s", "open_s", "transfer_s",
                            "fsync_s", "close_s", "user_s", "system_s", "bytes_per_s"}},
                          {"rows", ordered_json::array()}};
        if (facts.stonewall_ns > 0) {
            line["columns"].push_back("stonewall_bytes");
            line["columns"].push_back("stonewall_ops");
        }
        for (std::size_t i = first; i < std::min(rows.size(), first + chunk); ++i) {
            const TaskRow& r = rows[i];
            const double busy = seconds(r.end_ns - r.start_ns);
            ordered_json rate = busy > 0 ? ordered_json(static_cast<double>(r.bytes) / busy) : ordered_json(nullptr);
            line["rows"].push_back({r.task, r.node, r.stream, r.bytes, r.operations, seconds(r.start_ns),
                                    seconds(r.end_ns), seconds(r.open_ns), seconds(r.transfer_ns), seconds(r.fsync_ns),
                                    seconds(r.close_ns), seconds(r.user_ns), seconds(r.system_ns), rate});
            if (facts.stonewall_ns > 0) {
                line["rows"].back().push_back(r.stonewall_bytes);
                line["rows"].back().push_back(r.stonewall_operations);
            }
        }
        lines.push_back(line);
    }
    return lines;
}

ordered_json make_node_line(const Totals& totals, const PhaseFacts& facts) {
    struct NodeSum {
        std::uint64_t bytes = 0, operations = 0, user = 0, system = 0;
        std::int64_t start = INT64_MAX, end = 0;
        int tasks = 0;
    };
    std::map<int, NodeSum> nodes;
    for (const TaskRow& row : totals.rows) {
        NodeSum& sum = nodes[row.node];
        sum.bytes += row.bytes;
        sum.operations += row.operations;
        sum.user += row.user_ns;
        sum.system += row.system_ns;
        sum.start = std::min(sum.start, row.start_ns);
        sum.end = std::max(sum.end, row.end_ns);
        ++sum.tasks;
    }
    ordered_json line{
        {"columns", {"node", "host", "tasks", "bytes", "ops", "seconds", "bytes_per_s", "user_s", "system_s"}},
        {"rows", ordered_json::array()}};
    if (!facts.clocks.empty()) {
        for (const char* name : {"clock_offset_ns", "clock_error_ns", "clock_drift_ns", "clock_drift_error_ns"}) {
            line["columns"].push_back(name);
        }
    }
    for (const auto& [node, sum] : nodes) {
        const std::string host =
            static_cast<std::size_t>(node) < facts.hosts.size() ? facts.hosts[static_cast<std::size_t>(node)] : "";
        const double busy = seconds(sum.end - sum.start);
        line["rows"].push_back({node, records::to_json_text(host), sum.tasks, sum.bytes, sum.operations, busy,
                                busy > 0 ? ordered_json(static_cast<double>(sum.bytes) / busy) : ordered_json(nullptr),
                                seconds(sum.user), seconds(sum.system)});
        if (!facts.clocks.empty()) {
            const auto clock = std::find_if(facts.clocks.begin(), facts.clocks.end(),
                                            [&, n = node](const NodeClock& candidate) { return candidate.node == n; });
            for (const auto member :
                 {&NodeClock::offset_ns, &NodeClock::error_ns, &NodeClock::drift_ns, &NodeClock::drift_error_ns}) {
                line["rows"].back().push_back(clock != facts.clocks.end() ? ordered_json((*clock).*member) : nullptr);
            }
        }
    }
    return line;
}

}  // namespace sonde::results
