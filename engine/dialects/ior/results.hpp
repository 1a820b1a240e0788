// SPDX-License-Identifier: Apache-2.0
// The numbers that IOR prints, computed from the record of a test. IOR's definitions (docs/reference/ior has them
// beside ours): bandwidth = bytes / (last close - first open); IOPS = transfers / (last - first end of transfers),
// another interval; latency = mean of the task that was best.
#pragma once

#include "dialects/ior/translate.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::dialects::ior {

struct TaskTimes {
    int task = 0;
    double total_s = 0, transfer_s = 0;                        ///< seconds
    double start_s = 0, open_s = 0, fsync_s = 0, close_s = 0;  ///< seconds; start since the tasks began together
    double bytes = 0;
    std::int64_t operations = 0;
    double bytes_at_deadline = 0;
    std::int64_t operations_at_deadline = 0;
};

/// One write or read of one repetition.
// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library's move is said to throw, and does not.
struct IorMeasurement {
    IorStep step;
    bool failed = false;  ///< ended by an error
    double bytes = 0;
    std::int64_t operations = 0;
    double open_s = 0, transfer_s = 0, close_s = 0, total_s = 0;  ///< seconds; comparing (-R) is in transfer and total
    double compare_s = 0;                                         ///< seconds, of the task that compared longest
    double latency_s = 0;                                         ///< seconds, IOR's
    std::int64_t mismatches = 0, checked_bytes = 0;
    double stonewall_bytes = 0, stonewall_seconds = 0;
    std::int64_t max_task_operations = 0;  ///< of one task
    std::vector<TaskTimes> tasks;
    nlohmann::ordered_json sonde_figures;  ///< Sonde's figures: rates, latency, imbalance
    std::vector<std::string> findings;     ///< what Sonde says about it

    double bandwidth() const { return total_s > 0 ? bytes / total_s : 0; }
    double operations_per_s() const { return transfer_s > 0 ? static_cast<double>(operations) / transfer_s : 0; }
    bool writes() const { return step.kind == IorStep::StepKind::write; }
};

/// Over the repetitions of one operation; deviation of the population, as IOR has it.
struct RateSpread {
    double max = 0, min = 0, mean = 0, deviation = 0;
};
RateSpread compute_spread(const std::vector<double>& values);

/// Reads the record of one test while it is written.
class IorResults {
 public:
    explicit IorResults(std::vector<IorStep> steps) : steps_(std::move(steps)) {
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            step_indices_[steps_[i].id] = i;
        }
    }
    /// One line of the record. True when the point in current() is now complete.
    bool read_record_line(std::string_view type, const nlohmann::ordered_json& content);
    const IorMeasurement& current() const { return current_; }
    const std::vector<IorMeasurement>& measurements() const { return measurements_; }
    std::vector<IorMeasurement> select_measurements(bool writes) const;
    /// Sentences about errors that ended the test.
    const std::vector<std::string>& errors() const { return errors_; }
    std::string hosts_first;  ///< name of the first node

 private:
    const IorStep* find_step(const nlohmann::ordered_json& content) const;
    void read_phase_end(const nlohmann::ordered_json& content);
    bool read_task_rows(const nlohmann::ordered_json& content);

    std::vector<IorStep> steps_;
    std::map<std::string, std::size_t> step_indices_;  ///< of steps, by their id
    IorMeasurement current_;
    std::size_t task_rows_read_ = 0, task_rows_expected_ = 0;
    std::vector<IorMeasurement> measurements_;
    std::vector<std::string> errors_;
};

}  // namespace sonde::dialects::ior
