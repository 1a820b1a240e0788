// SPDX-License-Identifier: Apache-2.0
// IOR's results as JSON with IOR's member names; Sonde's own figures, when asked for, stand in members called "sonde".
// The document is written when all is done, so that it is valid whatever else was printed before.
#include "dialects/ior/file_names.hpp"
#include "dialects/ior/layout.hpp"
#include "plan/json_io.hpp"

#include <algorithm>
#include <cstdio>
#include <ostream>

namespace sonde::dialects::ior {
namespace {

using nlohmann::ordered_json;

std::string format_percent(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%2.1f%%", value);
    return text;
}

const char* packet_name(Packet packet) {
    static constexpr const char* names[] = {"timestamp", "offset", "incompressible", "random"};
    return names[static_cast<int>(packet)];
}

}  // namespace

ordered_json build_parameters_json(const IorTest& test) {
    const IorSettings& s = *test.settings;
    const auto memory_per_node = static_cast<std::int64_t>(0);
    return {{"testID", test.number},
            {"refnum", s.reference},
            {"api", s.api},
            {"platform", s.platform.empty() ? platform_name() : s.platform},
            {"testFileName", s.file},
            {"deadlineForStonewall", s.deadline},
            {"stoneWallingWearOut", s.wear_out ? 1 : 0},
            {"maxTimeDuration", s.max_minutes},
            {"outlierThreshold", s.outlier_seconds},
            {"options", "(null)"},
            {"dryRun", s.dry_run ? 1 : 0},
            {"nodes", s.nodes > 0 ? s.nodes : test.placement.nodes},
            {"memoryPerTask", s.memory_per_task},
            {"memoryPerNode", memory_per_node},
            {"tasksPerNode", test.placement.tasks_per_node(s)},
            {"repetitions", s.repetitions},
            {"multiFile", s.multiple_files ? 1 : 0},
            {"interTestDelay", s.test_delay},
            {"fsync", s.fsync ? 1 : 0},
            {"fsyncperwrite", s.fsync_per_write ? 1 : 0},
            {"useExistingTestFile", s.use_existing ? 1 : 0},
            {"uniqueDir", s.unique_directory ? 1 : 0},
            {"singleXferAttempt", s.single_attempt ? 1 : 0},
            {"readFile", s.read ? 1 : 0},
            {"writeFile", s.write ? 1 : 0},
            {"filePerProc", s.file_per_process ? 1 : 0},
            {"reorderTasks", s.reorder},
            {"reorderTasksRandom", s.reorder_random},
            {"reorderTasksRandomSeed", s.reorder_seed},
            {"randomOffset", s.random_offset},
            {"checkWrite", s.check_write ? 1 : 0},
            {"checkRead", s.check_read ? 1 : 0},
            {"dataPacketType", static_cast<int>(s.packet)},
            {"keepFile", s.keep ? 1 : 0},
            {"keepFileWithError", s.keep_with_error ? 1 : 0},
            {"warningAsErrors", s.warnings_are_errors ? 1 : 0},
            {"verbose", s.verbose},
            {"data packet type", packet_name(s.packet)},
            {"setTimeStampSignature/incompressibleSeed", s.signature},
            {"collective", s.collective ? 1 : 0},
            {"segmentCount", s.segments},
            {"transferSize", s.transfer},
            {"blockSize", s.block}};
}

namespace {

ordered_json build_options_json(const IorTest& test) {
    const IorSettings& s = *test.settings;
    ordered_json options{{"api", s.api},
                         {"apiVersion", ""},
                         {"test filename", s.file},
                         {"access", s.file_per_process ? "file-per-process" : "single-shared-file"},
                         {"type", s.collective ? "collective" : "independent"},
                         {"segments", s.segments},
                         {"ordering in a file", s.random_offset != 0 ? "random" : "sequential"}};
    options["ordering inter file"] = s.reorder != 0          ? "constant task offset"
                                     : s.reorder_random != 0 ? "random task offset"
                                                             : "no tasks offsets";
    if (s.reorder != 0 || s.reorder_random != 0) {
        options["task offset"] = s.task_offset;
    }
    if (s.reorder_random != 0) {
        options["reorder random seed"] = s.reorder_seed;
    }
    options["nodes"] = s.nodes > 0 ? s.nodes : test.placement.nodes;
    options["tasks"] = test.placement.active_tasks(s);
    options["clients per node"] = test.placement.tasks_per_node(s);
    options["memoryBuffer"] = s.gpu_memory != 0 ? "GPU-device" : "CPU";
    options["dataAccess"] = "CPU";
    options["GPUDirect"] = s.gpu_direct ? "1" : "0";
    options["repetitions"] = s.repetitions;
    options["xfersize"] = format_size(static_cast<double>(s.transfer));
    options["blocksize"] = format_size(static_cast<double>(s.block));
    options["aggregate filesize"] = format_size(test.expected_bytes());
    if (s.verbose > 0) {
        options["verbose"] = s.verbose;
    }
    if (s.deadline > 0) {
        options["stonewallingTime"] = s.deadline;
        options["stoneWallingWearOut"] = s.wear_out ? 1 : 0;
    }
    return options;
}

/// Sonde's figures of a point.
ordered_json make_sonde_members(const IorMeasurement& measurement) {
    ordered_json figures{
        {"iter", measurement.step.repetition}, {"bytes", measurement.bytes}, {"ops", measurement.operations}};
    figures.update(measurement.sonde_figures);
    if (measurement.checked_bytes > 0) {
        figures["checked_bytes"] = measurement.checked_bytes;
        figures["mismatches"] = measurement.mismatches;
    }
    figures["findings"] = measurement.findings;
    return figures;
}

ordered_json build_result_json(const IorTest& test, const IorMeasurement& measurement, bool with_figures) {
    const IorSettings& s = *test.settings;
    if (measurement.step.kind == IorStep::StepKind::remove) {
        return {{"access", "remove"}, {"totalTime", measurement.total_s}};
    }
    ordered_json result{{"access", measurement.writes() ? "write" : "read"},
                        {"bwMiB", measurement.bandwidth() / mebi},
                        {"blockKiB", static_cast<double>(s.block) / 1024},
                        {"xferKiB", static_cast<double>(s.transfer) / 1024},
                        {"iops", measurement.operations_per_s()},
                        {"latency", measurement.latency_s},
                        {"openTime", measurement.open_s},
                        {"wrRdTime", measurement.transfer_s},
                        {"closeTime", measurement.close_s},
                        {"totalTime", measurement.total_s}};
    if (with_figures) {
        result["sonde"] = make_sonde_members(measurement);
    }
    return result;
}

ordered_json build_summary_json(const IorTest& test, bool writes, bool with_figures) {
    const IorSettings& s = *test.settings;
    const std::vector<IorMeasurement> points = test.select_measurements(writes);
    std::vector<double> rates, calls;
    double seconds = 0, wall_seconds = 0, wall_bytes = 0;
    for (const IorMeasurement& measurement : points) {
        rates.push_back(measurement.bandwidth() / mebi);
        calls.push_back(measurement.bandwidth() / static_cast<double>(s.transfer));
        seconds += measurement.total_s;
        wall_seconds += measurement.stonewall_seconds;
        wall_bytes += measurement.stonewall_bytes / test.placement.active_tasks(s);
    }
    const RateSpread rate = compute_spread(rates);
    const RateSpread call = compute_spread(calls);
    const auto count = static_cast<double>(points.size());
    ordered_json summary{{"operation", writes ? "write" : "read"},
                         {"API", s.api},
                         {"TestID", test.number},
                         {"ReferenceNumber", s.reference},
                         {"segmentCount", s.segments},
                         {"blockSize", s.block},
                         {"transferSize", s.transfer},
                         {"numTasks", test.placement.active_tasks(s)},
                         {"tasksPerNode", test.placement.tasks_per_node(s)},
                         {"repetitions", s.repetitions},
                         {"filePerProc", s.file_per_process ? 1 : 0},
                         {"reorderTasks", s.reorder},
                         {"taskPerNodeOffset", s.task_offset},
                         {"reorderTasksRandom", s.reorder_random},
                         {"reorderTasksRandomSeed", s.reorder_seed},
                         {"bwMaxMIB", rate.max},
                         {"bwMinMIB", rate.min},
                         {"bwMeanMIB", rate.mean},
                         {"bwStdMIB", rate.deviation},
                         {"OPsMax", call.max},
                         {"OPsMin", call.min},
                         {"OPsMean", call.mean},
                         {"OPsSD", call.deviation},
                         {"MeanTime", seconds / count}};
    if (s.wear_out && wall_seconds > 0) {
        summary["StoneWallTime"] = wall_seconds / count;
        summary["StoneWallbwMeanMIB"] = wall_bytes / wall_seconds / mebi;
        if (with_figures) {
            const double all = wall_bytes * test.placement.active_tasks(s) / wall_seconds / mebi;
            summary["sonde"] = {{"StoneWallbwMeanMIB of all tasks", all}};
        }
    }
    summary["xsizeMiB"] = points.front().bytes / mebi;
    return summary;
}

class JsonWriter final : public OutputWriter {
 public:
    JsonWriter(std::ostream& out, int verbose, bool with_figures)
        : out_(out), verbose_(verbose), with_figures_(with_figures) {}

    void begin_output(const std::string& command) override {
        document_ = {{"Version", version_text},        {"Began", format_current_date()},
                     {"Command line", command},        {"Machine", describe_machine(verbose_)},
                     {"tests", ordered_json::array()}, {"summary", ordered_json::array()}};
    }

    void begin_test(const IorTest& test) override {
        const IorSettings& s = *test.settings;
        ordered_json entry{{"TestID", test.number}, {"StartTime", test.start_date}};
        const std::string file = get_test_path(s);
        if (const FileSystemUse use = measure_file_system_use(file); use.is_known) {
            entry["Path"] = file;
            entry["Capacity"] = use.capacity;
            entry["Used Capacity"] = format_percent(use.used_percent);
            entry["Inodes"] = use.inodes;
            entry["Used Inodes"] = format_percent(use.inodes_percent);
        }
        entry["Parameters"] = build_parameters_json(test);
        entry["Options"] = build_options_json(test);
        entry["Results"] = ordered_json::array();
        document_["tests"].push_back(entry);
    }

    void write_measurement(const IorTest& test, const IorMeasurement& measurement) override {
        const bool is_listed = measurement.step.kind == IorStep::StepKind::write ||
                               measurement.step.kind == IorStep::StepKind::read ||
                               (measurement.step.kind == IorStep::StepKind::remove && verbose_ > 0);
        if (is_listed) {
            document_["tests"].back()["Results"].push_back(build_result_json(test, measurement, with_figures_));
        }
    }

    void end_test(const IorTest& test) override {
        ordered_json most = ordered_json::object();
        for (const bool writes : {true, false}) {
            double best = 0;
            for (const IorMeasurement& measurement : test.select_measurements(writes)) {
                best = std::max(best, measurement.bandwidth());
            }
            if (verbose_ > 0 && best > 0) {
                most[writes ? "writeMiB" : "readMiB"] = best / mebi;
                most[writes ? "writeMB" : "readMB"] = best / 1e6;
            }
        }
        if (!most.empty()) {
            document_["tests"].back()["max"] = most;
        }
    }

    void end_output(const std::vector<const IorTest*>& tests, bool complete) override {
        for (const IorTest* test : tests) {
            for (const bool writes : {true, false}) {
                if (!test->select_measurements(writes).empty()) {
                    document_["summary"].push_back(build_summary_json(*test, writes, with_figures_));
                }
            }
        }
        if (complete) {
            document_["Finished"] = format_current_date();
        }
        out_ << plan::serialize_json(document_, plan::JsonEncoding::utf8, 2) << "\n";
        out_.flush();
    }

 private:
    std::ostream& out_;
    int verbose_;
    bool with_figures_;
    ordered_json document_;
};

}  // namespace

std::unique_ptr<OutputWriter> make_json(std::ostream& out, int verbose, bool with_figures) {
    return std::make_unique<JsonWriter>(out, verbose, with_figures);
}

}  // namespace sonde::dialects::ior
