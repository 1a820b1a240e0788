// SPDX-License-Identifier: Apache-2.0
// The arithmetic of rates and the lines of the record that carry it.
#include "phases/summary.hpp"

#include "records/text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sonde::phases {
namespace {

using meters::Histogram;
using meters::Interval;
using nlohmann::ordered_json;

constexpr double ns_per_s = 1e9;
double seconds(std::int64_t ns) {
    return static_cast<double>(ns) / ns_per_s;
}
double seconds(std::uint64_t ns) {
    return static_cast<double>(ns) / ns_per_s;
}

/// Both lanes added up, slice by slice.
std::vector<SliceSum> all_slices(const Totals& totals) {
    std::vector<SliceSum> sum(std::max(totals.lane[0].slices.size(), totals.lane[1].slices.size()));
    for (const LaneSum& lane : totals.lane) {
        for (std::size_t i = 0; i < lane.slices.size(); ++i) {
            sum[i].bytes += lane.slices[i].bytes;
            sum[i].operations += lane.slices[i].operations;
            sum[i].active += lane.slices[i].active;
            for (const auto& [bucket, count] : lane.slices[i].rates) {
                sum[i].rates[bucket] += count;
            }
        }
    }
    return sum;
}

/// Bytes and operations moved from `from` to `to` (ns), partial slices in proportion.
RateValue window(const std::vector<SliceSum>& slices, std::int64_t width, std::int64_t from, std::int64_t to) {
    double bytes = 0;
    double operations = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const auto start = static_cast<std::int64_t>(i) * width;
        const std::int64_t inside = std::min(to, start + width) - std::max(from, start);
        if (inside > 0) {
            const double share = static_cast<double>(inside) / static_cast<double>(width);
            bytes += share * static_cast<double>(slices[i].bytes);
            operations += share * static_cast<double>(slices[i].operations);
        }
    }
    return {static_cast<std::uint64_t>(std::llround(bytes)), static_cast<std::uint64_t>(std::llround(operations)),
            seconds(to - from)};
}

/// Bytes and operations moved until `to` (ns), the moment when the first task had finished. The slice that holds it is
/// divided as the tasks' own mean rates would fill it: the finished ones have moved nothing in its second part.
RateValue moved_until(const Totals& totals, const std::vector<SliceSum>& slices, std::int64_t to) {
    const std::int64_t start = to / totals.slice_ns * totals.slice_ns;
    RateValue sum = window(slices, totals.slice_ns, 0, start);
    const auto last = static_cast<std::size_t>(to / totals.slice_ns);
    double before = 0;
    double all = 0;
    for (const TaskRow& row : totals.rows) {
        const std::int64_t busy = row.transfer_end_ns - row.transfer_start_ns;
        if (busy <= 0) {
            continue;
        }
        const auto inside = [&row, start](std::int64_t end) {
            const std::int64_t both = std::min(end, row.transfer_end_ns) - std::max(start, row.transfer_start_ns);
            return static_cast<double>(std::max<std::int64_t>(0, both));
        };
        const double rate = static_cast<double>(row.bytes + 1) / static_cast<double>(busy);
        before += rate * inside(to);
        all += rate * inside(start + totals.slice_ns);
    }
    if (last < slices.size() && all > 0) {
        const double share = before / all;
        sum.bytes += static_cast<std::uint64_t>(std::llround(share * static_cast<double>(slices[last].bytes)));
        sum.operations +=
            static_cast<std::uint64_t>(std::llround(share * static_cast<double>(slices[last].operations)));
    }
    return sum;
}

Interval whole(const Totals& totals) {
    Interval all;
    for (const Interval& part : totals.part) {
        if (part.first_start_ns >= 0 || part.last_end_ns >= 0) {
            const bool first = all.first_start_ns < 0 && all.last_end_ns < 0;
            all.first_start_ns = first ? part.first_start_ns : std::min(all.first_start_ns, part.first_start_ns);
            all.last_end_ns = first ? part.last_end_ns : std::max(all.last_end_ns, part.last_end_ns);
        }
    }
    return all;
}

double length(const Interval& interval) {
    return seconds(interval.last_end_ns - interval.first_start_ns);
}

ordered_json rate_json(const RateValue& rate) {
    return {{"bytes", rate.bytes},
            {"ops", rate.operations},
            {"seconds", rate.seconds},
            {"bytes_per_s", static_cast<double>(rate.bytes) / rate.seconds},
            {"ops_per_s", static_cast<double>(rate.operations) / rate.seconds}};
}

constexpr const char* kind_names[meters::kinds] = {"read",    "write",  "open",   "fsync", "close",
                                                   "stat",    "remove", "create", "mkdir", "open_close",
                                                   "readdir", "rename", "rmdir"};

ordered_json latency_json(const Histogram& h) {
    const std::uint64_t count = h.count();
    return {{"count", count},
            {"min_ns", h.min_ns},
            {"mean_ns", static_cast<double>(h.sum_ns) / static_cast<double>(count)},
            {"p50_ns", h.quantile(0.50)},
            {"p90_ns", h.quantile(0.90)},
            {"p95_ns", h.quantile(0.95)},
            {"p99_ns", h.quantile(0.99)},
            {"p999_ns", h.quantile(0.999)},
            {"max_ns", h.max_ns}};
}

ordered_json imbalance_json(const Totals& totals, const PhaseFacts& facts) {
    std::vector<const TaskRow*> rows;
    for (const TaskRow& row : totals.rows) {
        rows.push_back(&row);
    }
    const auto busy = [](const TaskRow* row) { return row->end_ns - row->start_ns; };
    const auto rate = [&busy](const TaskRow* row) {
        return busy(row) > 0 ? static_cast<double>(row->bytes) / seconds(busy(row)) : 0.0;
    };
    const double sum = std::accumulate(rows.begin(), rows.end(), 0.0,
                                       [&](double s, const TaskRow* r) { return s + seconds(busy(r)); });
    const auto longest = std::max_element(rows.begin(), rows.end(), [&](auto a, auto b) { return busy(a) < busy(b); });
    ordered_json out;
    if (sum > 0) {
        out["max_over_mean"] = seconds(busy(*longest)) / (sum / static_cast<double>(rows.size()));
    }
    std::vector<std::int64_t> ends;
    for (const TaskRow* row : rows) {
        ends.push_back(row->end_ns);
    }
    std::sort(ends.begin(), ends.end());
    const Interval all = whole(totals);
    if (all.last_end_ns > all.first_start_ns && !ends.empty()) {
        const std::int64_t half = ends[(ends.size() - 1) / 2];
        out["tail_share"] = seconds(all.last_end_ns - half) / length(all);
    }
    std::sort(rows.begin(), rows.end(), [&](auto a, auto b) { return rate(a) < rate(b); });
    out["slowest"] = ordered_json::array();
    for (std::size_t i = 0; i < rows.size() && i < 5; ++i) {
        const std::string host = static_cast<std::size_t>(rows[i]->node) < facts.hosts.size()
                                     ? facts.hosts[static_cast<std::size_t>(rows[i]->node)]
                                     : "";
        out["slowest"].push_back({{"task", rows[i]->task},
                                  {"node", rows[i]->node},
                                  {"host", records::json_text(host)},
                                  {"bytes_per_s", rate(rows[i])},
                                  {"seconds", seconds(busy(rows[i]))}});
    }
    return out;
}

ordered_json lanes_json(const Totals& totals) {
    std::array<std::int64_t, 2> start{0, 0};
    std::array<std::int64_t, 2> end{INT64_MAX, INT64_MAX};
    for (const TaskRow& row : totals.rows) {
        const auto lane = static_cast<std::size_t>(row.lane);
        start[lane] = std::max(start[lane], row.transfer_start_ns);
        end[lane] = std::min(end[lane], row.transfer_end_ns);
    }
    const std::int64_t from = std::max(start[0], start[1]);
    const std::int64_t to = std::min(end[0], end[1]);
    ordered_json out = ordered_json::array();
    for (const LaneSum& lane : totals.lane) {
        ordered_json one{{"bytes", lane.bytes}};
        if (to > from && to != INT64_MAX) {
            const RateValue rate = window(lane.slices, totals.slice_ns, from, to);
            one["overlap_s"] = rate.seconds;
            one["overlap_bytes"] = rate.bytes;
            one["bytes_per_s"] = static_cast<double>(rate.bytes) / rate.seconds;
        }
        out.push_back(one);
    }
    return out;
}

}  // namespace

std::map<std::string, RateValue> rates_of(const Totals& totals, const PhaseFacts& facts) {
    std::map<std::string, RateValue> rates;
    const std::uint64_t bytes = totals.bytes[0] + totals.bytes[1];
    const std::uint64_t operations = totals.operations[0] + totals.operations[1] + totals.file_operations;
    const auto put = [&rates](const char* name, const RateValue& value) {
        if (value.seconds > 0) {
            rates[name] = value;
        }
    };
    const Interval all = whole(totals);
    const Interval& transfer = totals.part[meters::part_transfer];
    put("total", {bytes, operations, length(all)});
    put("transfer", {bytes, operations, length(transfer)});
    if (facts.stonewall_ns > 0) {
        put("stonewall", {totals.stonewall_bytes, totals.stonewall_operations,
                          seconds(std::min(facts.stonewall_ns, std::max<std::int64_t>(transfer.last_end_ns, 0)) -
                                  all.first_start_ns)});
    }
    std::int64_t last_start = 0;
    std::int64_t first_end = INT64_MAX;
    double own = 0;
    double own_operations = 0;
    for (const TaskRow& row : totals.rows) {
        last_start = std::max(last_start, row.transfer_start_ns);
        first_end = std::min(first_end, row.transfer_end_ns);
        if (row.end_ns > row.start_ns) {
            own += static_cast<double>(row.bytes) / seconds(row.end_ns - row.start_ns);
            own_operations += static_cast<double>(row.operations) / seconds(row.end_ns - row.start_ns);
        }
    }
    const std::vector<SliceSum> slices = all_slices(totals);
    if (totals.slice_ns > 0 && first_end != INT64_MAX) {
        // Whole slices only: from the first one in which all tasks move to the last one in which all still do.
        const std::int64_t from = (last_start + totals.slice_ns - 1) / totals.slice_ns * totals.slice_ns;
        const std::int64_t to = first_end / totals.slice_ns * totals.slice_ns;
        if (to - from >= 3 * totals.slice_ns) {
            put("steady", window(slices, totals.slice_ns, from, to));
        }
        if (first_end > all.first_start_ns) {
            RateValue first = moved_until(totals, slices, first_end);
            first.seconds = seconds(first_end - all.first_start_ns);
            put("first_done", first);
        }
    }
    if (own_operations > 0) {
        // Rates of tasks add up; stated over one second, because each task has its own interval.
        put("task_sum", {static_cast<std::uint64_t>(std::llround(own)),
                         static_cast<std::uint64_t>(std::llround(own_operations)), 1.0});
    }
    return rates;
}

ordered_json phase_end_line(const Totals& totals, const PhaseFacts& facts) {
    ordered_json line;
    line["stopped_by"] = facts.stopped_by;
    const std::uint64_t bytes = totals.bytes[0] + totals.bytes[1];
    const std::uint64_t operations = totals.operations[0] + totals.operations[1] + totals.file_operations;
    line["bytes"] = {{"moved", bytes}, {"read", totals.bytes[0]}, {"written", totals.bytes[1]}};
    line["ops"] = {{"done", operations},
                   {"read", totals.operations[0]},
                   {"written", totals.operations[1]},
                   {"short", totals.short_operations},
                   {"failed", totals.failed}};
    if (totals.entries > 0) {
        line["entries"] = totals.entries;
    }
    if (totals.planned_operations > 0) {
        line["bytes"]["planned"] = totals.planned_bytes;
        line["ops"]["planned"] = totals.planned_operations;
    }
    const std::map<std::string, RateValue> rates = rates_of(totals, facts);
    ordered_json wall;
    ordered_json spent;
    wall["elapsed"] = std::max(0.0, length(whole(totals)));
    constexpr const char* part_names[meters::parts] = {"open", "transfer", "fsync", "close"};
    std::uint64_t user = 0;
    std::uint64_t system = 0;
    for (const TaskRow& row : totals.rows) {
        user += row.user_ns;
        system += row.system_ns;
    }
    for (unsigned i = 0; i < meters::parts; ++i) {
        if (totals.part[i].first_start_ns >= 0) {
            wall[part_names[i]] = length(totals.part[i]);
            spent[part_names[i]] = seconds(totals.part[i].sum_ns);
        }
    }
    if (totals.checked_bytes > 0) {
        wall["verify"] = seconds(totals.verify_ns);
    }
    line["seconds"] = wall;
    line["task_seconds"] = spent;
    if (totals.checked_bytes > 0) {
        line["verify"] = {{"checked_bytes", totals.checked_bytes}, {"mismatches", totals.mismatches}};
    }
    line["rates"] = ordered_json::object();
    for (const char* name : {"total", "transfer", "stonewall", "steady", "task_sum", "first_done"}) {
        if (const auto rate = rates.find(name); rate != rates.end()) {
            line["rates"][name] = rate_json(rate->second);
        }
    }
    if (rates.contains("stonewall") && rates.contains("total") && rates.at("stonewall").bytes > 0) {
        const auto per_second = [&](const char* name) {
            return static_cast<double>(rates.at(name).bytes) / rates.at(name).seconds;
        };
        line["wearout_ratio"] = per_second("total") / per_second("stonewall");
    }
    line["latency"] = ordered_json::object();
    for (unsigned i = 0; i < meters::kinds; ++i) {
        if (totals.histogram[i].count() > 0) {
            line["latency"][kind_names[i]] = latency_json(totals.histogram[i]);
        }
    }
    line["cpu"] = {{"user_s", seconds(user)}, {"system_s", seconds(system)}};
    if (system > 0) {
        line["cpu"]["bytes_per_system_s"] = static_cast<double>(bytes) / seconds(system);
    }
    if (user > 0) {
        line["cpu"]["bytes_per_user_s"] = static_cast<double>(bytes) / seconds(user);
    }
    line["imbalance"] = imbalance_json(totals, facts);
    if (facts.resident >= 0) {
        line["resident"] = facts.resident;
    }
    if (!totals.lane[1].slices.empty()) {
        line["lanes"] = lanes_json(totals);
    }
    return line;
}

ordered_json series_line(const Totals& totals) {
    ordered_json line{{"scope", "all"}, {"slice_s", seconds(totals.slice_ns)}};
    ordered_json bytes = ordered_json::array();
    ordered_json operations = ordered_json::array();
    ordered_json active = ordered_json::array();
    std::array<ordered_json, 5> band;
    constexpr std::array<const char*, 5> names{"min", "p25", "p50", "p75", "max"};
    constexpr std::array<double, 5> shares{0.0, 0.25, 0.5, 0.75, 1.0};
    band.fill(ordered_json::array());
    for (const SliceSum& slice : all_slices(totals)) {
        bytes.push_back(slice.bytes);
        operations.push_back(slice.operations);
        active.push_back(slice.active);
        std::uint64_t count = 0;
        for (const auto& [bucket, n] : slice.rates) {
            count += n;
        }
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (count == 0) {
                band[i].push_back(nullptr);
                continue;
            }
            const auto rank = std::max<std::uint64_t>(
                1, static_cast<std::uint64_t>(std::ceil(shares[i] * static_cast<double>(count))));
            std::uint64_t seen = 0;
            for (const auto& [bucket, n] : slice.rates) {
                seen += n;
                if (seen >= rank) {
                    const double middle =
                        static_cast<double>(Histogram::low(bucket) + Histogram::low(bucket + 1) - 1) / 2;
                    band[i].push_back(middle / seconds(totals.slice_ns));
                    break;
                }
            }
        }
    }
    line["bytes"] = bytes;
    line["ops"] = operations;
    line["active"] = active;
    for (std::size_t i = 0; i < names.size(); ++i) {
        line["task_rate"][names[i]] = band[i];
    }
    return line;
}

std::vector<ordered_json> histogram_lines(const Totals& totals) {
    std::vector<ordered_json> lines;
    for (unsigned i = 0; i < meters::kinds; ++i) {
        const Histogram& h = totals.histogram[i];
        if (h.count() == 0) {
            continue;
        }
        ordered_json buckets = ordered_json::array();
        for (const Histogram::Bucket& bucket : h.filled()) {
            buckets.push_back({bucket.low_ns, bucket.high_ns, bucket.count});
        }
        lines.push_back({{"kind", kind_names[i]},
                         {"count", h.count()},
                         {"min_ns", h.min_ns},
                         {"max_ns", h.max_ns},
                         {"sum_ns", h.sum_ns},
                         {"overflow", h.overflow},
                         {"buckets", buckets}});
    }
    return lines;
}

std::vector<ordered_json> task_lines(const Totals& totals, const PhaseFacts& facts) {
    std::vector<TaskRow> rows = totals.rows;
    std::sort(rows.begin(), rows.end(),
              [](const TaskRow& a, const TaskRow& b) { return a.task != b.task ? a.task < b.task : a.lane < b.lane; });
    constexpr std::size_t chunk = 1024;
    std::vector<ordered_json> lines;
    for (std::size_t first = 0; first < rows.size(); first += chunk) {
        ordered_json line{{"first_task", rows[first].task},
                          {"columns",
                           {"task", "node", "lane", "bytes", "ops", "start_s", "end_s", "open_s", "transfer_s",
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
            line["rows"].push_back({r.task, r.node, r.lane, r.bytes, r.operations, seconds(r.start_ns),
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

ordered_json node_line(const Totals& totals, const PhaseFacts& facts) {
    struct Sum {
        std::uint64_t bytes = 0, operations = 0, user = 0, system = 0;
        std::int64_t start = INT64_MAX, end = 0;
        int tasks = 0;
    };
    std::map<int, Sum> nodes;
    for (const TaskRow& row : totals.rows) {
        Sum& sum = nodes[row.node];
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
    for (const auto& [node, sum] : nodes) {
        const std::string host =
            static_cast<std::size_t>(node) < facts.hosts.size() ? facts.hosts[static_cast<std::size_t>(node)] : "";
        const double busy = seconds(sum.end - sum.start);
        line["rows"].push_back({node, records::json_text(host), sum.tasks, sum.bytes, sum.operations, busy,
                                busy > 0 ? ordered_json(static_cast<double>(sum.bytes) / busy) : ordered_json(nullptr),
                                seconds(sum.user), seconds(sum.system)});
    }
    return line;
}

}  // namespace sonde::phases
