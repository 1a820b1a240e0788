// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sonde::dialects::ior {

using nlohmann::ordered_json;

namespace {

double seconds(const ordered_json& content, const char* part) {
    return content.contains("seconds") ? content.at("seconds").value(part, 0.0) : 0.0;
}

/// Value of a named column in a row of a table line.
template <class T>
T cell(const ordered_json& table, const ordered_json& row, const char* column) {
    const auto& columns = table.at("columns");
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i] == column && row.at(i).is_number()) {
            return row.at(i).get<T>();
        }
    }
    return T{};
}

}  // namespace

RateSpread compute_spread(const std::vector<double>& values) {
    RateSpread spread;
    if (values.empty()) {
        return spread;
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    spread.min = *least;
    spread.max = *most;
    for (const double value : values) {
        spread.mean += value / static_cast<double>(values.size());
    }
    double squares = 0;
    for (const double value : values) {
        squares += (value - spread.mean) * (value - spread.mean);
    }
    spread.deviation = std::sqrt(squares / static_cast<double>(values.size()));
    return spread;
}

const IorStep* IorResults::find_step(const ordered_json& content) const {
    const auto match = step_indices_.find(content.value("phase", std::string()));
    return match == step_indices_.end() ? nullptr : &steps_[match->second];
}

void IorResults::read_phase_end(const ordered_json& content) {
    current_ = IorMeasurement{};
    task_rows_read_ = 0;
    current_.step = *find_step(content);
    task_rows_expected_ = content.value("tasks", std::size_t{1});
    current_.failed = content.value("stopped_by", std::string()) == "error";
    current_.bytes = content.at("bytes").value("transferred", 0.0);
    current_.operations = content.at("ops").value("done", std::int64_t{0});
    current_.compare_s = seconds(content, "verify");
    current_.open_s = seconds(content, "open");
    current_.close_s = seconds(content, "close");
    current_.transfer_s = seconds(content, "transfer") + current_.compare_s;
    current_.total_s = seconds(content, "elapsed") + current_.compare_s;
    if (content.contains("verify")) {
        current_.mismatches = content.at("verify").value("mismatches", std::int64_t{0});
        current_.checked_bytes = content.at("verify").value("checked_bytes", std::int64_t{0});
    }
    for (const char* member : {"stopped_by", "seconds", "rates", "wearout_ratio", "latency", "cpu", "imbalance"}) {
        if (content.contains(member)) {
            current_.sonde_figures[member] = content.at(member);
        }
    }
    if (content.contains("rates") && content.at("rates").contains("stonewall")) {
        current_.stonewall_bytes = content.at("rates").at("stonewall").value("bytes", 0.0);
        current_.stonewall_seconds = content.at("rates").at("stonewall").value("seconds", 0.0);
    }
    current_.latency_s = std::numeric_limits<double>::max();
}

bool IorResults::read_task_rows(const ordered_json& content) {
    for (const ordered_json& row : content.at("rows")) {
        TaskTimes times;
        times.task = cell<int>(content, row, "task");
        times.bytes = cell<double>(content, row, "bytes");
        times.operations = cell<std::int64_t>(content, row, "ops");
        times.transfer_s = cell<double>(content, row, "transfer_s");
        times.start_s = cell<double>(content, row, "start_s");
        times.open_s = cell<double>(content, row, "open_s");
        times.fsync_s = cell<double>(content, row, "fsync_s");
        times.close_s = cell<double>(content, row, "close_s");
        times.bytes_at_deadline = cell<double>(content, row, "stonewall_bytes");
        times.operations_at_deadline = cell<std::int64_t>(content, row, "stonewall_ops");
        times.total_s = cell<double>(content, row, "end_s") - cell<double>(content, row, "start_s");
        if (times.operations > 0) {
            const double mean = (times.transfer_s + current_.compare_s) / static_cast<double>(times.operations);
            current_.latency_s = std::min(current_.latency_s, mean);
        }
        current_.max_task_operations = std::max(current_.max_task_operations, times.operations);
        current_.tasks.push_back(times);
        ++task_rows_read_;
    }
    if (task_rows_read_ < task_rows_expected_) {
        return false;
    }
    if (current_.latency_s == std::numeric_limits<double>::max()) {
        current_.latency_s = 0;
    }
    std::sort(current_.tasks.begin(), current_.tasks.end(),
              [](const auto& a, const auto& b) { return a.task < b.task; });
    if (current_.failed) {
        return false;  // IOR ends where it fails, without a row
    }
    measurements_.push_back(current_);
    return true;
}

bool IorResults::read_record_line(std::string_view type, const ordered_json& content) {
    if (type == "node" && hosts_first.empty()) {
        hosts_first = content.value("host", std::string());
    } else if (type == "error") {
        errors_.push_back(content.value("text", std::string()));
    } else if (type == "finding") {
        const std::string text = content.value("text", std::string());
        if (!measurements_.empty() && measurements_.back().step.id == content.value("phase", std::string())) {
            measurements_.back().findings.push_back(text);
        }
    } else if (type == "phase_end" && find_step(content) != nullptr) {
        read_phase_end(content);
    } else if (type == "tasks" && find_step(content) != nullptr) {
        return read_task_rows(content);
    }
    return false;
}

std::vector<IorMeasurement> IorResults::select_measurements(bool writes) const {
    std::vector<IorMeasurement> all;
    for (const IorMeasurement& measurement : measurements_) {
        if (measurement.step.kind == (writes ? IorStep::StepKind::write : IorStep::StepKind::read)) {
            all.push_back(measurement);
        }
    }
    return all;
}

}  // namespace sonde::dialects::ior
