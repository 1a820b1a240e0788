// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

#include "records/text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sonde::results {
namespace {

using meters::Histogram;
using meters::WorkInterval;
using nlohmann::ordered_json;

/// Bytes and operations between `from` and `to` (ns); partial slices count proportionally.
RateValue sum_window(const std::vector<SliceSum>& slices, std::int64_t width, std::int64_t from, std::int64_t to) {
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

/// Bytes and operations until `to` (ns), when the first task finished. The slice that contains `to` is divided by the
/// mean rates of the tasks, because finished tasks move nothing in its second part.
RateValue sum_until_first_done(const Totals& totals, const std::vector<SliceSum>& slices, std::int64_t to) {
    const std::int64_t start = to / totals.slice_ns * totals.slice_ns;
    RateValue sum = sum_window(slices, totals.slice_ns, 0, start);
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

WorkInterval phase_interval(const Totals& totals) {
    WorkInterval all;
    for (const WorkInterval& part : totals.parts_of_work) {
        if (part.first_start_ns >= 0 || part.last_end_ns >= 0) {
            const bool first = all.first_start_ns < 0 && all.last_end_ns < 0;
            all.first_start_ns = first ? part.first_start_ns : std::min(all.first_start_ns, part.first_start_ns);
            all.last_end_ns = first ? part.last_end_ns : std::max(all.last_end_ns, part.last_end_ns);
        }
    }
    return all;
}

double seconds_between(const WorkInterval& interval) {
    return seconds(interval.last_end_ns - interval.first_start_ns);
}

ordered_json rate_json(const RateValue& rate) {
    return {{"bytes", rate.bytes},
            {"ops", rate.operations},
            {"seconds", rate.seconds},
            {"bytes_per_s", static_cast<double>(rate.bytes) / rate.seconds},
            {"ops_per_s", static_cast<double>(rate.operations) / rate.seconds}};
}

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
    const WorkInterval all = phase_interval(totals);
    if (all.last_end_ns > all.first_start_ns && !ends.empty()) {
        const std::int64_t direction_rates = ends[(ends.size() - 1) / 2];
        out["tail_share"] = seconds(all.last_end_ns - direction_rates) / seconds_between(all);
    }
    std::sort(rows.begin(), rows.end(), [&](auto a, auto b) { return rate(a) < rate(b); });
    out["slowest"] = ordered_json::array();
    for (std::size_t i = 0; i < rows.size() && i < 5; ++i) {
        const std::string host = static_cast<std::size_t>(rows[i]->node) < facts.hosts.size()
                                     ? facts.hosts[static_cast<std::size_t>(rows[i]->node)]
                                     : "";
        out["slowest"].push_back({{"task", rows[i]->task},
                                  {"node", rows[i]->node},
                                  {"host", records::to_json_text(host)},
                                  {"bytes_per_s", rate(rows[i])},
                                  {"seconds", seconds(busy(rows[i]))}});
    }
    return out;
}

ordered_json streams_json(const Totals& totals) {
    std::array<std::int64_t, 2> start{0, 0};
    std::array<std::int64_t, 2> end{INT64_MAX, INT64_MAX};
    for (const TaskRow& row : totals.rows) {
        const auto stream = static_cast<std::size_t>(row.stream);
        start[stream] = std::max(start[stream], row.transfer_start_ns);
        end[stream] = std::min(end[stream], row.transfer_end_ns);
    }
    const std::int64_t from = std::max(start[0], start[1]);
    const std::int64_t to = std::min(end[0], end[1]);
    ordered_json out = ordered_json::array();
    for (const StreamSum& stream : totals.sums_of_streams) {
        ordered_json stream_json{{"bytes", stream.bytes}};
        if (to > from && to != INT64_MAX) {
            const RateValue rate = sum_window(stream.slices, totals.slice_ns, from, to);
            stream_json["overlap_s"] = rate.seconds;
            stream_json["overlap_bytes"] = rate.bytes;
            stream_json["bytes_per_s"] = static_cast<double>(rate.bytes) / rate.seconds;
        }
        out.push_back(stream_json);
    }
    return out;
}

/// Operations of any kind, also those on files by name.
std::uint64_t count_operations(const Totals& totals) {
    return totals.operations[0] + totals.operations[1] + totals.file_operations;
}

/// Members "bytes", "ops" and "entries".
void add_amounts(ordered_json& line, const Totals& totals) {
    line["bytes"] = {
        {"transferred", totals.bytes[0] + totals.bytes[1]}, {"read", totals.bytes[0]}, {"written", totals.bytes[1]}};
    line["ops"] = {{"done", count_operations(totals)},
                   {"read", totals.operations[0]},
                   {"written", totals.operations[1]},
                   {"short", totals.short_operations},
                   {"failed", totals.failed_operations}};
    if (totals.retries > 0) {
        line["ops"]["retries"] = totals.retries;
    }
    if (totals.listed_entries > 0) {
        line["entries"] = totals.listed_entries;
    }
    if (totals.planned_operations > 0) {
        line["bytes"]["planned"] = totals.planned_bytes;
        line["ops"]["planned"] = totals.planned_operations;
    }
}

/// Members "seconds" (wall-clock time of each part) and "task_seconds" (the same, summed over tasks).
void add_times(ordered_json& line, const Totals& totals) {
    constexpr const char* part_names[meters::parts] = {"open", "transfer", "fsync", "close"};
    ordered_json wall;
    ordered_json spent;
    wall["elapsed"] = std::max(0.0, seconds_between(phase_interval(totals)));
    for (unsigned i = 0; i < meters::parts; ++i) {
        if (totals.parts_of_work[i].first_start_ns >= 0) {
            wall[part_names[i]] = seconds_between(totals.parts_of_work[i]);
            spent[part_names[i]] = seconds(totals.parts_of_work[i].sum_ns);
        }
    }
    if (totals.checked_bytes > 0) {
        wall["verify"] = seconds(totals.longest_verify_ns);
    }
    line["seconds"] = wall;
    line["task_seconds"] = spent;
}

/// Members "rates" and "wearout_ratio".
void add_rates(ordered_json& line, const Totals& totals, const PhaseFacts& facts) {
    const std::map<std::string, RateValue> rates = compute_rates(totals, facts);
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
}

ordered_json cpu_json(const Totals& totals) {
    std::uint64_t user = 0;
    std::uint64_t system = 0;
    for (const TaskRow& row : totals.rows) {
        user += row.user_ns;
        system += row.system_ns;
    }
    const auto bytes = static_cast<double>(totals.bytes[0] + totals.bytes[1]);
    ordered_json cpu{{"user_s", seconds(user)}, {"system_s", seconds(system)}};
    if (system > 0) {
        cpu["bytes_per_system_s"] = bytes / seconds(system);
    }
    if (user > 0) {
        cpu["bytes_per_user_s"] = bytes / seconds(user);
    }
    return cpu;
}

}  // namespace

std::string find_node_name(const std::vector<std::string>& hosts, int node) {
    const auto index = static_cast<std::size_t>(node);
    return index < hosts.size() && !hosts[index].empty() ? records::to_json_text(hosts[index])
                                                         : "node " + std::to_string(node);
}

std::map<std::string, RateValue> compute_rates(const Totals& totals, const PhaseFacts& facts) {
    std::map<std::string, RateValue> rates;
    const std::uint64_t bytes = totals.bytes[0] + totals.bytes[1];
    const std::uint64_t operations = count_operations(totals);
    const auto add_rate = [&rates](const char* name, const RateValue& value) {
        if (value.seconds > 0) {
            rates[name] = value;
        }
    };
    const WorkInterval all = phase_interval(totals);
    const WorkInterval& transfer = totals.parts_of_work[meters::part_transfer];
    add_rate("total", {bytes, operations, seconds_between(all)});
    add_rate("transfer", {bytes, operations, seconds_between(transfer)});
    if (facts.stonewall_ns > 0) {
        add_rate("stonewall", {totals.stonewall_bytes, totals.stonewall_operations,
                               seconds(std::min(facts.stonewall_ns, std::max<std::int64_t>(transfer.last_end_ns, 0)) -
                                       all.first_start_ns)});
    }
    std::int64_t last_start = 0;
    std::int64_t first_end = INT64_MAX;
    double task_sum_bytes = 0;
    double task_sum_operations = 0;
    for (const TaskRow& row : totals.rows) {
        last_start = std::max(last_start, row.transfer_start_ns);
        first_end = std::min(first_end, row.transfer_end_ns);
        if (row.end_ns > row.start_ns) {
            task_sum_bytes += static_cast<double>(row.bytes) / seconds(row.end_ns - row.start_ns);
            task_sum_operations += static_cast<double>(row.operations) / seconds(row.end_ns - row.start_ns);
        }
    }
    const std::vector<SliceSum> slices = sum_slices_of_streams(totals);
    if (totals.slice_ns > 0 && first_end != INT64_MAX) {
        // Only complete slices, from the first to the last one in which all tasks transfer data.
        const std::int64_t from = (last_start + totals.slice_ns - 1) / totals.slice_ns * totals.slice_ns;
        const std::int64_t to = first_end / totals.slice_ns * totals.slice_ns;
        if (to - from >= 3 * totals.slice_ns) {
            add_rate("steady", sum_window(slices, totals.slice_ns, from, to));
        }
        if (first_end > all.first_start_ns) {
            RateValue first = sum_until_first_done(totals, slices, first_end);
            first.seconds = seconds(first_end - all.first_start_ns);
            add_rate("first_done", first);
        }
    }
    if (task_sum_operations > 0) {
        // Rates of tasks add up; stated over one second, because each task has its own interval.
        add_rate("task_sum", {static_cast<std::uint64_t>(std::llround(task_sum_bytes)),
                              static_cast<std::uint64_t>(std::llround(task_sum_operations)), 1.0});
    }
    return rates;
}

void add_stream_directions(ordered_json& line, const Totals& totals) {
    constexpr std::array<std::pair<const char*, meters::CallKind>, 2> directions{
        {{"read", meters::kind_read}, {"write", meters::kind_write}}};
    const double transfer_s = seconds_between(totals.parts_of_work[meters::part_transfer]);
    Histogram all;
    for (const auto& [name, kind] : directions) {
        if (totals.operations[kind] > 0 && transfer_s > 0) {
            line["directions"][name] = rate_json({totals.bytes[kind], totals.operations[kind], transfer_s});
        }
        all.merge(totals.latency_histograms[kind]);
    }
    if (all.count() > 0) {
        line["latency"]["all"] = latency_json(all);
    }
}

ordered_json make_phase_end_line(const Totals& totals, const PhaseFacts& facts) {
    ordered_json line;
    line["stopped_by"] = facts.stopped_by;
    add_amounts(line, totals);
    add_times(line, totals);
    if (totals.checked_bytes > 0) {
        line["verify"] = {{"checked_bytes", totals.checked_bytes}, {"mismatches", totals.mismatch_count}};
    }
    add_rates(line, totals, facts);
    line["latency"] = ordered_json::object();
    for (unsigned i = 0; i < meters::kinds; ++i) {
        if (totals.latency_histograms[i].count() > 0) {
            line["latency"][meters::kind_names[i]] = latency_json(totals.latency_histograms[i]);
        }
    }
    line["cpu"] = cpu_json(totals);
    line["imbalance"] = imbalance_json(totals, facts);
    if (facts.residency >= 0) {
        line["residency"] = facts.residency;
    }
    if (!totals.sums_of_streams[1].slices.empty()) {
        line["streams"] = streams_json(totals);
    }
    return line;
}

}  // namespace sonde::results
