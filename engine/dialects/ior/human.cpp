// SPDX-License-Identifier: Apache-2.0
// IOR's layout for people, column for column, because scripts read it.
#include "dialects/ior/file_names.hpp"
#include "dialects/ior/layout.hpp"
#include "plan/json_io.hpp"

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace sonde::dialects::ior {
namespace {

constexpr double gibi = 0x1p30;

/// A number in a column of ten: six decimals below one, none from 3600 on.
std::string format_column(double value) {
    return format_text("%-10.*f", value < 1 ? 6 : value < 3600 ? 2 : 0, value);
}

class TextWriter final : public OutputWriter {
 public:
    TextWriter(std::ostream& out, int verbose) : out_(out), verbose_(verbose) {}

    void begin_output(const std::string& command) override {
        out_ << "IOR-" << version_text << ": MPI Coordinated Test of Parallel I/O\n";
        print_field("Began", format_current_date());
        print_field("Command line", command);
        print_field("Machine", describe_machine(verbose_));
        out_.flush();
    }

    void begin_test(const IorTest& test) override {
        const IorSettings& s = *test.settings;
        print_field("TestID", std::to_string(test.number));
        print_field("StartTime", test.start_date);
        const std::string file = get_test_path(s);
        if (const FileSystemUse use = measure_file_system_use(file); use.is_known) {
            print_field("Path", file);
            out_ << format_text("%-20s: %s   Used FS: %2.1f%%   Inodes: %s   Used Inodes: %2.1f%%\n", "FS",
                                use.capacity.c_str(), use.used_percent, use.inodes.c_str(), use.inodes_percent);
        }
        if (verbose_ >= 3) {
            show_parameters(test);
        }
        show_options(test);
        out_ << "\nResults: \n";
        show_data_signature(test);
        out_ << "\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   "
                "total(s)   iter\n"
                "------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   "
                "--------   ----\n";
        out_.flush();
    }

    void write_measurement(const IorTest& test, const IorMeasurement& measurement) override {
        const IorSettings& s = *test.settings;
        if (measurement.step.kind == IorStep::StepKind::remove) {
            if (verbose_ >= 3) {
                out_ << "task 0 removing " << find_file_name(test, measurement, 0) << "\n";
            }
            if (verbose_ > 0) {
                out_ << "remove    -          -          -           -          -          -          -          -     "
                        "     "
                     << format_column(measurement.total_s) << format_text(" %-4d\n", measurement.step.repetition);
            }
            return;
        }
        if (measurement.step.kind == IorStep::StepKind::check_write && verbose_ >= 1) {
            out_ << "Verifying contents of the file(s) just written.\n" << format_current_date() << "\n\n";
        }
        if (measurement.step.kind != IorStep::StepKind::write && measurement.step.kind != IorStep::StepKind::read) {
            return;
        }
        if (measurement.step.repetition > 0 && (measurement.writes() || !s.write)) {
            show_data_signature(test);
        }
        if (verbose_ >= 3) {
            show_times(test, measurement);
        }
        if (s.wear_out && s.deadline > 0) {
            print_stonewall(test, measurement);
        }
        out_ << format_text("%-10s", measurement.writes() ? "write" : "read")
             << format_column(measurement.bandwidth() / mebi) << " " << format_column(measurement.operations_per_s())
             << " " << format_column(measurement.latency_s) << "  "
             << format_column(static_cast<double>(s.block) / 1024) << " "
             << format_column(static_cast<double>(s.transfer) / 1024) << " " << format_column(measurement.open_s) << " "
             << format_column(measurement.transfer_s) << " " << format_column(measurement.close_s) << " "
             << format_column(measurement.total_s) << format_text(" %-4d\n", measurement.step.repetition);
        out_.flush();
    }

    void end_test(const IorTest& test) override {
        const IorSettings& s = *test.settings;
        if (s.wear_out && s.status_file.empty() && !test.select_measurements(true).empty()) {
            out_ << "Pairs deadlineForStonewallingaccessed: "
                 << test.select_measurements(true).front().max_task_operations << "\n";
        }
        if (s.summary_always) {
            print_heading();
            print_row(test, true);
            print_row(test, false);
        } else if (verbose_ > 0) {
            print_maximum(test, true);
            print_maximum(test, false);
        }
        out_.flush();
    }

    bool write_warning(const std::string& sentence) override {
        out_ << "WARNING: " << sentence << "\n" << std::flush;
        return true;
    }

    void write_error(const std::string& reason) override { out_ << "ERROR: " << reason << "\n" << std::flush; }

    void end_output(const std::vector<const IorTest*>& tests, bool complete) override {
        if (!complete) {
            out_.flush();
            return;
        }
        out_ << "\nSummary of all tests:";
        print_heading();
        for (const IorTest* test : tests) {
            print_row(*test, true);
            print_row(*test, false);
        }
        print_field("Finished", format_current_date());
        out_.flush();
    }

 private:
    void print_field(const char* key, const std::string& text) {
        out_ << std::left << std::setw(20) << key << ": " << text << "\n";
    }

    void show_data_signature(const IorTest& test) {
        if (verbose_ >= 2) {
            const auto stamp = static_cast<std::uint32_t>(test.signature);
            out_ << format_text("Using Time Stamp %u (0x%x) for Data Signature\n", stamp, stamp);
        }
    }

    void show_parameters(const IorTest& test) {
        out_ << "\nParameters: \n";
        const nlohmann::ordered_json parameters = build_parameters_json(test);
        for (const auto& [key, setting] : parameters.items()) {
            const bool letter = key == "data packet type";  // IOR names it by a letter here, by its first word in JSON
            print_field(key.c_str(), letter ? std::string(1, "gtoi"[static_cast<int>(test.settings->packet)])
                                     : setting.is_string()
                                         ? setting.get<std::string>()
                                         : plan::serialize_json(setting, plan::JsonEncoding::strict_utf8));
        }
    }

    static std::string find_file_name(const IorTest& test, const IorMeasurement& measurement, int task) {
        const IorSettings& s = *test.settings;
        return get_test_path(s, task) + (s.multiple_files ? "." + std::to_string(measurement.step.repetition) : "");
    }

    /// When each task opened, moved and closed, in seconds since the tasks began together.
    void show_times(const IorTest& test, const IorMeasurement& measurement) {
        const char* access = measurement.writes() ? "write" : "read";
        for (const TaskTimes& task : measurement.tasks) {
            out_ << "task " << task.task << (measurement.writes() ? " writing " : " reading ")
                 << find_file_name(test, measurement, task.task) << "\n";
        }
        out_ << "Commencing " << access << " performance test: " << format_current_date() << "\n"
             << (measurement.writes() ? "" : "\n");
        for (const TaskTimes& task : measurement.tasks) {
            const double opened = task.start_s + task.open_s;
            const double closed = task.start_s + task.total_s;
            const auto line = [&](double time, const char* part, const char* edge) {
                out_ << format_text("Test %d: Iter=%d, Task=%d, Time=%f, %s%s %s\n", test.number,
                                    measurement.step.repetition, task.task, time, access, part, edge);
            };
            line(task.start_s, " open", "start");
            line(opened, " open", "stop");
            line(opened, "", "start");
            line(std::min(opened + task.transfer_s + task.fsync_s, closed - task.close_s), "", "stop");
            line(closed - task.close_s, " close", "start");
            line(closed, " close", "stop");
        }
    }

    void show_options(const IorTest& test) {
        const IorSettings& s = *test.settings;
        out_ << "\nOptions: \n";
        print_field("api", s.api);
        print_field("apiVersion", "");
        print_field("test filename", s.file);
        print_field("access", s.file_per_process ? "file-per-process" : "single-shared-file");
        print_field("type", s.collective ? "collective" : "independent");
        print_field("segments", std::to_string(s.segments));
        print_field("ordering in a file", s.random_offset != 0 ? "random" : "sequential");
        if (s.reorder != 0 || s.reorder_random == 1) {
            print_field("ordering inter file", s.reorder != 0 ? "constant task offset" : "random task offset");
            print_field("task offset", std::to_string(s.task_offset));
            if (s.reorder_random == 1) {
                print_field("reorder random seed", std::to_string(s.reorder_seed));
            }
        } else if (s.reorder_random == 0) {
            print_field("ordering inter file", "no tasks offsets");
        }
        print_field("nodes", std::to_string(s.nodes > 0 ? s.nodes : test.placement.nodes));
        print_field("tasks", std::to_string(test.placement.active_tasks(s)));
        print_field("clients per node", std::to_string(test.placement.tasks_per_node(s)));
        print_field("memoryBuffer", s.gpu_memory != 0 ? "GPU-device" : "CPU");
        print_field("dataAccess", "CPU");
        print_field("GPUDirect", s.gpu_direct ? "1" : "0");
        print_field("repetitions", std::to_string(s.repetitions));
        print_field("xfersize", format_size(static_cast<double>(s.transfer)));
        print_field("blocksize", format_size(static_cast<double>(s.block)));
        print_field("aggregate filesize", format_size(test.expected_bytes()));
        if (s.dry_run) {
            print_field("dryRun", "1");
        }
        if (s.verbose > 0) {
            print_field("verbose", std::to_string(s.verbose));
        }
        if (s.deadline > 0) {
            print_field("stonewallingTime", std::to_string(s.deadline));
            print_field("stoneWallingWearOut", s.wear_out ? "1" : "0");
        }
    }

    void print_heading() {
        out_ << "\n"
             << format_text("%-9s %10s %10s %10s %10s %10s %10s %10s %10s %10s %10s %13s", "Operation", "Max(MiB)",
                            "Min(MiB)", "Mean(MiB)", "StdDev", "Max(OPs)", "Min(OPs)", "Mean(OPs)", "StdDev", "Mean(s)",
                            "Stonewall(s)", "Stonewall(MiB)")
             << " Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt "
             << format_text("%8s %8s %9s %5s RefNum\n", " blksiz", "xsize", "aggs(MiB)", "API");
    }

    void print_row(const IorTest& test, bool writes) {
        const IorSettings& s = *test.settings;
        const std::vector<IorMeasurement> points = test.select_measurements(writes);
        if (points.empty()) {
            return;
        }
        std::vector<double> rates, calls;
        double seconds = 0, wall_seconds = 0, wall_bytes = 0;
        for (const IorMeasurement& measurement : points) {
            rates.push_back(measurement.bandwidth());
            calls.push_back(measurement.bandwidth() / static_cast<double>(s.transfer));
            seconds += measurement.total_s;
            wall_seconds += measurement.stonewall_seconds;
            wall_bytes +=
                measurement.stonewall_bytes / test.placement.active_tasks(s);  // of a task: that is what IOR shows
        }
        const auto count = static_cast<double>(points.size());
        const RateSpread rate = compute_spread(rates);
        const RateSpread call = compute_spread(calls);
        out_ << format_text("%-9s %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.5f ",
                            writes ? "write" : "read", rate.max / mebi, rate.min / mebi, rate.mean / mebi,
                            rate.deviation / mebi, call.max, call.min, call.mean, call.deviation, seconds / count);
        if (s.wear_out && wall_seconds > 0) {
            out_ << format_text("%10.2f %13.2f ", wall_seconds / count, wall_bytes / wall_seconds / mebi);
        } else {
            out_ << format_text("%10s %13s ", "NA", "NA");
        }
        out_ << format_text(
            "%5d %6d %3d %4d %3d %5d %8lld %9d %4lld %6lld %8lld %8lld %9.1f %3s %6lld\n", test.number,
            test.placement.active_tasks(s), test.placement.tasks_per_node(s), s.repetitions, s.file_per_process ? 1 : 0,
            s.reorder, static_cast<long long>(s.task_offset), s.reorder_random, static_cast<long long>(s.reorder_seed),
            static_cast<long long>(s.segments), static_cast<long long>(s.block), static_cast<long long>(s.transfer),
            points.front().bytes / mebi, s.api.c_str(), static_cast<long long>(s.reference));
    }

    /// Progress of the tasks at the deadline, and the count to which all then continued. IOR takes the call
    /// that was under way for done; here it is not.
    void print_stonewall(const IorTest& test, const IorMeasurement& measurement) {
        if (measurement.tasks.empty()) {
            return;
        }
        const auto by_operations = [](const TaskTimes& a, const TaskTimes& b) {
            return a.operations_at_deadline < b.operations_at_deadline;
        };
        const auto by_bytes = [](const TaskTimes& a, const TaskTimes& b) {
            return a.bytes_at_deadline < b.bytes_at_deadline;
        };
        const auto least = std::min_element(measurement.tasks.begin(), measurement.tasks.end(), by_operations);
        const double min_bytes =
            std::min_element(measurement.tasks.begin(), measurement.tasks.end(), by_bytes)->bytes_at_deadline;
        out_ << format_text(
            "stonewalling pairs accessed min: %lld max: %lld -- min data: %.1f GiB mean data: %.1f GiB time: %.1fs\n",
            static_cast<long long>(least->operations_at_deadline),
            static_cast<long long>(measurement.max_task_operations), min_bytes / gibi,
            measurement.stonewall_bytes / test.placement.active_tasks(*test.settings) / gibi,
            measurement.stonewall_seconds);
    }

    void print_maximum(const IorTest& test, bool writes) {
        double best = 0;
        for (const IorMeasurement& measurement : test.select_measurements(writes)) {
            best = std::max(best, measurement.bandwidth());
        }
        if (best > 0) {
            out_ << format_text(
                writes ? "Max Write: %.2f MiB/sec (%.2f MB/sec)\n" : "Max Read:  %.2f MiB/sec (%.2f MB/sec)\n",
                best / mebi, best / 1e6);
        }
    }

    std::ostream& out_;
    int verbose_;
};

}  // namespace

std::unique_ptr<OutputWriter> make_human(std::ostream& out, int verbose) {
    return std::make_unique<TextWriter>(out, verbose);
}

}  // namespace sonde::dialects::ior
