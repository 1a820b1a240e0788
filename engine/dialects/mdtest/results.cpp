// SPDX-License-Identifier: Apache-2.0
#include "dialects/mdtest/results.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sonde::dialects::mdtest {
namespace {

using nlohmann::ordered_json;

/// Seconds of the phase before the first task began, which are none of the tool's. A table comes in parts, and a test
/// may be several phases: with -c files are made by the first and opened by all.
void read_phase_begin(TestResult& test, const std::string& phase, double begin) {
    if (test.table_phase == phase) {
        test.begin_s += std::min(0.0, begin - test.table_phase_begin_s);
        test.table_phase_begin_s = std::min(test.table_phase_begin_s, begin);
        return;
    }
    test.table_phase = phase;
    test.table_phase_begin_s = begin;
    test.begin_s += begin;
}

void read_task_rows(TestResult& test, const ordered_json& table, int tasks) {
    const auto& columns = table.at("columns");
    const auto column = [&columns](const char* name) {
        return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
    };
    const std::size_t task = column("task");
    const std::size_t ops = column("ops");
    const std::size_t start = column("start_s");
    const std::size_t end = column("end_s");
    test.items_by_task.resize(static_cast<std::size_t>(tasks), 0);
    test.end_s_by_task.resize(static_cast<std::size_t>(tasks), 0);
    const std::size_t deadline = column("stonewall_ops");
    test.items_at_deadline.resize(test.stonewalled && deadline < columns.size() ? test.items_by_task.size() : 0, 0);
    std::optional<double> begin;
    for (const auto& row : table.at("rows")) {
        const auto number = row.at(task).get<std::size_t>();
        if (number < test.items_by_task.size()) {
            test.items_by_task[number] += row.at(ops).get<double>();
            test.end_s_by_task[number] += row.at(end).get<double>();
            if (row.at(ops).get<double>() > 0) {
                begin = std::min(begin.value_or(row.at(start)), row.at(start).get<double>());
            }
            if (!test.items_at_deadline.empty()) {
                test.items_at_deadline[number] += row.at(deadline).get<double>();
            }
        }
    }
    if (begin) {
        read_phase_begin(test, table.at("phase"), *begin);
    }
}

void read_phase_end(TestResult& test, const ordered_json& end) {
    const double done = end.at("ops").at("done");
    test.operations += done;
    test.entries = end.value("entries", 0.0);
    if (end.at("rates").contains("total")) {
        test.ops_per_s = end.at("rates").at("total").at("ops_per_s");
    }
    for (const auto& [kind, latency] : end.at("latency").items()) {
        if (kind != "fsync") {
            test.median_ns = latency.at("p50_ns");
            test.p99_ns = latency.at("p99_ns");
        }
    }
    test.stonewalled = end.at("stopped_by") == "stonewall";
    test.done = true;
}

}  // namespace

void MdtestResults::read_record_line(std::string_view type, const ordered_json& content, int tasks) {
    if (type == "finding" && content.at("severity") != "info") {
        findings.push_back(content.value("phase", std::string()) + ": " + content.at("text").get<std::string>());
    }
    const auto name = content.contains("phase") ? parse_phase_id(content.at("phase").get<std::string>()) : std::nullopt;
    if (!name || static_cast<std::size_t>(name->iteration) >= results_by_iteration.size()) {
        return;
    }
    TestResult& test =
        results_by_iteration[static_cast<std::size_t>(name->iteration)][static_cast<std::size_t>(name->test)];
    if (type == "phase_end") {
        read_phase_end(test, content);
        if (content.contains("verify")) {
            mismatches += content.at("verify").at("mismatches").get<std::uint64_t>();
        }
        if (name->test == file_create && content.at("rates").contains("stonewall") &&
            content.at("stopped_by") == "stonewall") {
            stonewall_s = content.at("rates").at("stonewall").at("seconds");
            stonewall_items = content.at("rates").at("stonewall").at("ops");
        }
    } else if (type == "verification") {
        mismatches += content.at("mismatches").get<std::uint64_t>();
    } else if (type == "tasks") {
        read_task_rows(test, content, tasks);
        const auto last = std::max_element(test.end_s_by_task.begin(), test.end_s_by_task.end());
        test.duration_s = last == test.end_s_by_task.end() ? 0 : std::max(0.0, *last - test.begin_s);
        if (name->test == file_create && !test.items_by_task.empty()) {
            max_files_of_task =
                static_cast<std::uint64_t>(*std::max_element(test.items_by_task.begin(), test.items_by_task.end()));
        }
    }
}

void MdtestResults::divide_work_of_first_task(int tasks, const MdtestSettings& settings) {
    for (auto& all : results_by_iteration) {
        for (int i = 0; i < tests; ++i) {
            TestResult& test = all[static_cast<std::size_t>(i)];
            const bool by_one = settings.single_task || (settings.shared_file && i == file_remove);
            if (!test.done || !by_one || i == tree_create || i == tree_remove) {
                continue;
            }
            const double sum = std::accumulate(test.items_by_task.begin(), test.items_by_task.end(), 0.0);
            // With -c files are made by the first and opened by all: mdtest counts them once.
            const double times = settings.single_task && i == file_create ? 2.0 : 1.0;
            const double each = settings.shared_file ? sum : sum / tasks / times;
            std::fill(test.items_by_task.begin(), test.items_by_task.end(), each);
            std::fill(test.end_s_by_task.begin(), test.end_s_by_task.end(), test.begin_s + test.duration_s);
        }
    }
}

IterationStatistics compute_statistics(const std::vector<double>& values) {
    if (values.empty()) {
        return {};
    }
    const auto count = static_cast<double>(values.size());
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    IterationStatistics row{*most, *least, std::accumulate(values.begin(), values.end(), 0.0) / count, 0};
    for (const double value : values) {
        row.deviation += (value - row.mean) * (value - row.mean);
    }
    row.deviation = values.size() > 1 ? std::sqrt(row.deviation / (count - 1)) : 0;
    return row;
}

}  // namespace sonde::dialects::mdtest
