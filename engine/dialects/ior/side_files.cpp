// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/side_files.hpp"

#include <fstream>
#include <iomanip>

namespace sonde::dialects::ior {

std::optional<std::int64_t> read_status(const std::string& path) {
    std::ifstream file(path);
    std::int64_t count = 0;
    if (path.empty() || !(file >> count) || count < 1) {
        return std::nullopt;
    }
    return count;
}

std::string store_status(const IorTest& test) {
    const IorSettings& s = *test.settings;
    const std::vector<IorMeasurement> writes = test.select_measurements(true);
    if (s.status_file.empty() || writes.empty()) {
        return {};
    }
    std::ofstream file(s.status_file, std::ios::trunc);
    file << writes.front().max_task_operations;
    return file.flush() ? std::string()
                        : "the status file " + s.status_file +
                              " cannot be written: a later read would not know how much there is";
}

std::string add_rank_details(const IorSettings& s, const IorMeasurement& measurement) {
    const bool first = measurement.step.repetition == 0 && (measurement.writes() || !s.write);
    std::ofstream file(s.rank_details_file, first ? std::ios::trunc : std::ios::app);
    if (first) {
        file << "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n";
    }
    file << std::scientific << std::setprecision(10);
    for (const TaskTimes& task : measurement.tasks) {
        const auto rate = [&task](double seconds) { return seconds > 0 ? task.bytes / seconds : 0.0; };
        file << (measurement.writes() ? "write" : "read") << "," << task.task << "," << task.total_s << ","
             << task.transfer_s << "," << rate(task.total_s) << "," << rate(task.transfer_s) << "\n";
    }
    return file.flush() ? std::string()
                        : "saveRankPerformanceDetailsCSV: " + s.rank_details_file + " cannot be written";
}

}  // namespace sonde::dialects::ior
