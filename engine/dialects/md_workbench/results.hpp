// SPDX-License-Identifier: Apache-2.0
// The results of one phase from the record, and the lines that md-workbench prints for it.
#pragma once

#include "dialects/md_workbench/translate.hpp"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::dialects::md_workbench {

/// Latencies of one kind of call, in seconds, from the record's histogram: buckets are a few percent wide.
struct Latencies {
    std::uint64_t count = 0;
    double min = 0, q1 = 0, median = 0, q3 = 0, q90 = 0, q99 = 0, max = 0;
};

struct WorkbenchPhase {
    double duration_s = 0;                   ///< seconds until the last task was done, all parts of the phase
    std::vector<double> duration_s_by_task;  ///< by task
    std::vector<double> calls_by_task;       ///< by task: calls done
    std::uint64_t directory_creates = 0, directory_removes = 0, creates = 0, reads = 0, stats = 0, removes = 0;
    std::uint64_t errors = 0;  ///< calls that failed and objects with wrong content
    bool stonewalled = false;
    std::uint64_t max_task_calls = 0;                    ///< of one task, in the benchmark
    std::map<std::string, Latencies> latencies_by_kind;  ///< by kind as in the record: read, stat, create, remove
    std::vector<std::string> findings;

    void read_record_line(std::string_view type, const nlohmann::ordered_json& content);
    double max_latency() const;
};

/// The line or the row of a phase; `task`: of one task only. Single calls of one task are not told apart: then
/// latencies are left out.
std::string format_result_line(const WorkbenchSettings& settings, const WorkbenchStep& step,
                               const WorkbenchPhase& measured, std::optional<std::size_t> task);

}  // namespace sonde::dialects::md_workbench
