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

RateSpread spread_of(const std::vector<double>& values) {
    RateSpread spread;
    if (values.empty()) {
        return spread;
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    spread.least = *least;
    spread.most = *most;
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

const IorStep* IorResults::step_of(const ordered_json& content) const {
    const auto match = places_.find(content.value("phase", std::string()));
    return match == places_.end() ? nullptr : &steps_[match->second];
}

void IorResults::take_end(const ordered_json& content) {
    point_ = Point{};
    rows_ = 0;
    point_.step = *step_of(content);
    tasks_ = content.value("tasks", std::size_t{1});
    point_.failed = content.value("stopped_by", std::string()) == "error";
    point_.bytes = content.at("bytes").value("transferred", 0.0);
    point_.operations = content.at("ops").value("done", std::int64_t{0});
    point_.compare = seconds(content, "verify");
    point_.open = seconds(content, "open");
    point_.close = seconds(content, "close");
    point_.transfer = seconds(content, "transfer") + point_.compare;
    point_.total = seconds(content, "elapsed") + point_.compare;
    if (content.contains("verify")) {
        point_.mismatches = content.at("verify").value("mismatches", std::int64_t{0});
        point_.checked_bytes = content.at("verify").value("checked_bytes", std::int64_t{0});
    }
    for (const char* member : {"stopped_by", "seconds", "rates", "wearout_ratio", "latency", "cpu", "imbalance"}) {
        if (content.contains(member)) {
            point_.figures[member] = content.at(member);
        }
    }
    if (content.contains("rates") && content.at("rates").contains("stonewall")) {
        point_.stonewall_bytes = content.at("rates").at("stonewall").value("bytes", 0.0);
        point_.stonewall_seconds = content.at("rates").at("stonewall").value("seconds", 0.0);
    }
    point_.latency = std::numeric_limits<double>::max();
}

bool IorResults::take_tasks(const ordered_json& content) {
    for (const ordered_json& row : content.at("rows")) {
        TaskTimes times;
        times.task = cell<int>(content, row, "task");
        times.bytes = cell<double>(content, row, "bytes");
        times.operations = cell<std::int64_t>(content, row, "ops");
        times.transfer = cell<double>(content, row, "transfer_s");
        times.start = cell<double>(content, row, "start_s");
        times.open = cell<double>(content, row, "open_s");
        times.fsync = cell<double>(content, row, "fsync_s");
        times.close = cell<double>(content, row, "close_s");
        times.bytes_at_deadline = cell<double>(content, row, "stonewall_bytes");
        times.operations_at_deadline = cell<std::int64_t>(content, row, "stonewall_ops");
        times.total = cell<double>(content, row, "end_s") - cell<double>(content, row, "start_s");
        if (times.operations > 0) {
            const double mean = (times.transfer + point_.compare) / static_cast<double>(times.operations);
            point_.latency = std::min(point_.latency, mean);
        }
        point_.most_operations = std::max(point_.most_operations, times.operations);
        point_.tasks.push_back(times);
        ++rows_;
    }
    if (rows_ < tasks_) {
        return false;
    }
    if (point_.latency == std::numeric_limits<double>::max()) {
        point_.latency = 0;
    }
    std::sort(point_.tasks.begin(), point_.tasks.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
    if (point_.failed) {
        return false;  // IOR ends where it fails, without a row
    }
    points_.push_back(point_);
    return true;
}

bool IorResults::line(std::string_view type, const ordered_json& content) {
    if (type == "node" && hosts_first.empty()) {
        hosts_first = content.value("host", std::string());
    } else if (type == "error") {
        errors_.push_back(content.value("text", std::string()));
    } else if (type == "finding") {
        const std::string text = content.value("text", std::string());
        if (!points_.empty() && points_.back().step.id == content.value("phase", std::string())) {
            points_.back().findings.push_back(text);
        }
    } else if (type == "phase_end" && step_of(content) != nullptr) {
        take_end(content);
    } else if (type == "tasks" && step_of(content) != nullptr) {
        return take_tasks(content);
    }
    return false;
}

std::vector<Point> IorResults::of(bool writes) const {
    std::vector<Point> all;
    for (const Point& point : points_) {
        if (point.step.kind == (writes ? IorStep::StepKind::write : IorStep::StepKind::read)) {
            all.push_back(point);
        }
    }
    return all;
}

}  // namespace sonde::dialects::ior
