// SPDX-License-Identifier: Apache-2.0
#include "dialects/md_workbench/results.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace sonde::dialects::md_workbench {
namespace {

using nlohmann::ordered_json;

constexpr double mebi = 0x1p20;

template <class... Values>
std::string format_text(const char* format, Values... values) {
    std::array<char, 1024> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    return text.data();
}

/// From buckets [low, high, count] in ns: evenly spread inside each, and never outside of what was measured.
Latencies read_latencies(const ordered_json& line) {
    Latencies all;
    all.count = line.at("count").get<std::uint64_t>();
    all.min = line.value("min_ns", 0.0) / 1e9;
    all.max = line.value("max_ns", 0.0) / 1e9;
    const auto quantile = [&](double share) {
        double remaining = share * static_cast<double>(all.count);
        for (const auto& bucket : line.at("buckets")) {
            const auto count = bucket.at(2).get<double>();
            if (remaining <= count && count > 0) {
                const auto low = bucket.at(0).get<double>();
                const auto high = bucket.at(1).get<double>();
                return std::clamp((low + (high - low) * remaining / count) / 1e9, all.min, all.max);
            }
            remaining -= count;
        }
        return all.max;
    };
    all.q1 = quantile(0.25);
    all.median = quantile(0.5);
    all.q3 = quantile(0.75);
    all.q90 = quantile(0.9);
    all.q99 = quantile(0.99);
    return all;
}

std::uint64_t read_call_count(const ordered_json& end, const char* kind) {
    const auto& latency = end.at("latency");
    return latency.contains(kind) ? latency.at(kind).at("count").get<std::uint64_t>() : 0;
}

struct WorkbenchSpread {
    double min = 0, max = 0, mean = 0, deviation = 0;
};

WorkbenchSpread compute_spread(const std::vector<double>& values) {
    WorkbenchSpread spread;
    if (values.empty()) {
        return spread;
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const auto count = static_cast<double>(values.size());
    spread = {*least, *most, std::accumulate(values.begin(), values.end(), 0.0) / count, 0};
    for (const double value : values) {
        spread.deviation += (value - spread.mean) * (value - spread.mean);
    }
    spread.deviation = values.size() > 1 ? std::sqrt(spread.deviation / (count - 1)) : 0;
    return spread;
}

double quotient(double amount, double seconds) {
    return seconds > 0 ? amount / seconds : 0;
}

/// Counts of the calls that a line is about: of all tasks, or of one. All tasks have the same work, so that of one is
/// told by its share of all calls.
struct CallCounts {
    double time = 0, directory_creates = 0, directory_removes = 0, creates = 0, reads = 0, stats = 0, removes = 0;
};

CallCounts count_calls(const WorkbenchPhase& m, std::optional<std::size_t> task) {
    const double calls = std::accumulate(m.calls_by_task.begin(), m.calls_by_task.end(), 0.0);
    const double share = !task ? 1 : calls > 0 ? m.calls_by_task[*task] / calls : 0;
    const auto of = [share](std::uint64_t all) { return std::round(share * static_cast<double>(all)); };
    return {task ? m.duration_s_by_task[*task] : m.duration_s,
            of(m.directory_creates),
            of(m.directory_removes),
            of(m.creates),
            of(m.reads),
            of(m.stats),
            of(m.removes)};
}

std::string format_table_row(const WorkbenchSettings& s, const WorkbenchStep& step, const WorkbenchPhase& m,
                             const CallCounts& c) {
    const double throughput = quotient((c.creates + c.reads) * static_cast<double>(s.size), c.time) / mebi;
    if (m.errors > 0) {
        return format_text("%s err\t0\t0\t0\t%.0f\t0\t0", get_phase_name(step.phase), static_cast<double>(m.errors));
    }
    return format_text("%s \t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.3fs\t%.3fs\t%.2f MiB/s %.4e",
                       get_phase_name(step.phase), c.directory_creates, c.directory_removes, c.creates, c.reads,
                       c.stats, c.removes, c.time, c.time, throughput, m.max_latency());
}

std::string format_rates(const WorkbenchSettings& s, const WorkbenchStep& step, const WorkbenchPhase& m,
                         const CallCounts& c) {
    const double throughput = quotient((c.creates + c.reads) * static_cast<double>(s.size), c.time) / mebi;
    if (step.phase == PhaseKind::benchmark) {
        const double calls = c.reads * (s.read_only ? 2 : 4);
        std::string text =
            format_text("rate:%.1f iops/s objects:%.0f rate:%.1f obj/s tp:%.1f MiB/s op-max:%.4es",
                        quotient(calls, c.time), c.reads, quotient(c.reads, c.time), throughput, m.max_latency());
        return step.wait > 1e-9 ? text + format_text(" waiting_factor:%.2f", step.wait) : text;
    }
    if (step.phase == PhaseKind::precreate) {
        return format_text(
            "rate:%.1f iops/s dsets: %.0f objects:%.0f rate:%.3f dset/s rate:%.1f obj/s tp:%.1f MiB/s op-max:%.4es",
            quotient(c.directory_creates + c.creates, c.time), c.directory_creates, c.creates,
            quotient(c.directory_creates, c.time), quotient(c.creates, c.time), throughput, m.max_latency());
    }
    return format_text("rate:%.1f iops/s objects:%.0f dsets: %.0f rate:%.1f obj/s rate:%.3f dset/s op-max:%.4es",
                       quotient(c.removes + c.directory_removes, c.time), c.removes, c.directory_removes,
                       quotient(c.removes, c.time), quotient(c.directory_removes, c.time), m.max_latency());
}

std::string format_latencies(const WorkbenchPhase& m) {
    std::string text;
    for (const auto& [kind, name] : {std::pair{"read", "read"}, std::pair{"stat", "stat"},
                                     std::pair{"create", "create"}, std::pair{"remove", "delete"}}) {
        const auto latencies = m.latencies_by_kind.find(kind);
        if (latencies != m.latencies_by_kind.end() && latencies->second.max > 1e-9) {
            const Latencies& l = latencies->second;
            text += format_text(" %s(%.4es, %.4es, %.4es, %.4es, %.4es, %.4es, %.4es)", name, l.min, l.q1, l.median,
                                l.q3, l.q90, l.q99, l.max);
        }
    }
    return text;
}

}  // namespace

void WorkbenchPhase::read_record_line(std::string_view type, const ordered_json& content) {
    if (type == "phase_end") {
        directory_creates += read_call_count(content, "mkdir");
        directory_removes += read_call_count(content, "rmdir");
        creates += read_call_count(content, "create");
        reads += read_call_count(content, "read");
        stats += read_call_count(content, "stat");
        removes += read_call_count(content, "remove");
        errors += content.at("ops").value("failed", std::uint64_t{0});
        if (content.contains("verify")) {
            const auto wrong = content.at("verify").value("mismatches", std::uint64_t{0});
            errors += wrong;
            reads -= std::min(reads, wrong);
        }
        stonewalled = stonewalled || content.at("stopped_by") == "stonewall";
    } else if (type == "tasks") {
        const auto& columns = content.at("columns");
        const auto column = [&columns](const char* name) {
            return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
        };
        const std::size_t task = column("task"), end = column("end_s"), ops = column("ops");
        for (const auto& row : content.at("rows")) {
            const auto number = row.at(task).get<std::size_t>();
            duration_s_by_task.resize(std::max(duration_s_by_task.size(), number + 1), 0);
            calls_by_task.resize(duration_s_by_task.size(), 0);
            duration_s_by_task[number] += row.at(end).get<double>();
            calls_by_task[number] += row.at(ops).get<double>();
            max_task_calls = std::max(max_task_calls, row.at(ops).get<std::uint64_t>());
        }
        duration_s =
            duration_s_by_task.empty() ? 0 : *std::max_element(duration_s_by_task.begin(), duration_s_by_task.end());
    } else if (type == "histogram") {
        latencies_by_kind[content.at("kind").get<std::string>()] = read_latencies(content);
    } else if (type == "finding" && content.at("severity") != "info") {
        findings.push_back(content.value("phase", std::string()) + ": " + content.at("text").get<std::string>());
    }
}

double WorkbenchPhase::max_latency() const {
    double most = 0;
    for (const char* kind : {"read", "stat", "create", "remove"}) {
        const auto latencies = latencies_by_kind.find(kind);
        most = latencies == latencies_by_kind.end() ? most : std::max(most, latencies->second.max);
    }
    return most;
}

std::string format_result_line(const WorkbenchSettings& s, const WorkbenchStep& step, const WorkbenchPhase& m,
                               std::optional<std::size_t> task) {
    const CallCounts counts = count_calls(m, task);
    if (s.detailed) {
        return format_table_row(s, step, m, counts);
    }
    std::string text = format_text("%s process max:%.2fs ", get_phase_name(step.phase), counts.time);
    if (!task) {
        const WorkbenchSpread spread = compute_spread(m.duration_s_by_task);
        text += format_text("min:%.2fs mean: %.2fs balance:%.1f stddev:%.1f ", spread.min, spread.mean,
                            100 * quotient(spread.min, spread.max), spread.deviation);
    }
    text += format_rates(s, step, m, counts);
    if (!s.quiet || m.errors > 0) {
        text += format_text(" (%.0f errs%s)", static_cast<double>(m.errors), m.errors > 0 ? "!!!" : "");
    }
    if (!s.quiet && step.phase == PhaseKind::benchmark && s.stonewall_s > 0) {
        const double of_round = static_cast<double>(s.sets) * (s.read_only ? 2 : 4);
        text += format_text(" stonewall-iter:%.0f", static_cast<double>(m.max_task_calls) / of_round);
    }
    return task ? text : text + format_latencies(m);
}

}  // namespace sonde::dialects::md_workbench
