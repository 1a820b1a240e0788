// SPDX-License-Identifier: Apache-2.0
// The results of each test and iteration from the record, and mdtest's statistics of them.
#pragma once

#include "dialects/mdtest/translate.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace sonde::dialects::mdtest {

/// One test of one iteration.
struct TestResult {
    bool done = false;
    bool stonewalled = false;           ///< the deadline ended it
    std::vector<double> items_by_task;  ///< by task
    std::vector<double> end_s_by_task;  ///< by task: seconds from the common start until this task ended
    double begin_s = 0;                 ///< seconds from the common start to the first operation of any task
    double duration_s = 0;              ///< seconds from the first operation to the end of the last task
    double operations = 0;              ///< really done by all
    double ops_per_s = 0;               ///< ours: operations / (first start to last end)
    double median_ns = 0, p99_ns = 0;
    double entries = 0;
    std::vector<double> items_at_deadline;  ///< by task: items done when the stonewall ended this test; else empty
    std::string table_phase = {};           ///< of the last table that was read
    double table_phase_begin_s = 0;         ///< `begin_s` of that phase alone

    /// Seconds from the first operation of any task to the end of this one's work.
    double get_task_seconds(std::size_t task) const { return std::max(0.0, end_s_by_task[task] - begin_s); }
};

struct MdtestResults {
    explicit MdtestResults(int iterations = 0) : results_by_iteration(static_cast<std::size_t>(iterations)) {}

    std::vector<std::array<TestResult, tests>> results_by_iteration;
    std::uint64_t mismatches = 0;
    double stonewall_s = 0, stonewall_items = 0;  ///< file creation: when it came, and how much all had done
    std::uint64_t max_files_of_task = 0;          ///< files of the task that created most
    std::vector<std::string> findings;            ///< warnings of the record, one sentence each

    void read_record_line(std::string_view type, const nlohmann::ordered_json& content, int tasks);
    /// -c and -S leave work to the first task; mdtest counts as if each had done its own.
    void divide_work_of_first_task(int tasks, const MdtestSettings& settings);
};

/// A row of mdtest's table over iterations: max, min, mean and sample standard deviation.
struct IterationStatistics {
    double max = 0, min = 0, mean = 0, deviation = 0;
};
IterationStatistics compute_statistics(const std::vector<double>& values);

}  // namespace sonde::dialects::mdtest
