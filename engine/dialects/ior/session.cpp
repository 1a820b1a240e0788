// SPDX-License-Identifier: Apache-2.0
// One command line of IOR from its words to its summary.
#include "dialects/dialect.hpp"
#include "dialects/ior/arguments.hpp"
#include "dialects/ior/file_names.hpp"
#include "dialects/ior/layout.hpp"
#include "dialects/ior/side_files.hpp"
#include "dialects/ior/sonde_figures.hpp"
#include "dialects/plan_text.hpp"
#include "plan/plan_error.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <set>

namespace sonde::dialects::ior {
namespace {

void print_warning(const std::string& sentence) {
    std::cout.flush();
    static_cast<void>(std::fprintf(stderr, "sonde-engine: ior: %s\n", sentence.c_str()));
}

void print_warning_if_any(const std::string& sentence) {
    if (!sentence.empty()) {
        print_warning(sentence);
    }
}

/// A number from the environment that replaces the detected one, as in IOR's tests; printed as IOR prints it.
int read_fake_count(const char* variable, const char* label, int actual) {
    const char* value = std::getenv(variable);
    const int number = value == nullptr ? 0 : static_cast<int>(std::strtol(value, nullptr, 10));
    if (number < 1) {
        return actual;
    }
    std::cout << "Fake " << label << ": using " << number << "\n";
    return number;
}

TaskPlacement make_task_placement(const SessionSetup& setup) {
    const auto& nodes = setup.node_of;
    const auto on_first = static_cast<int>(std::count(nodes.begin(), nodes.end(), nodes.front()));
    return {setup.tasks, read_fake_count("IOR_FAKE_NODES", "number of node", setup.nodes),
            read_fake_count("IOR_FAKE_TASK_PER_NODES", "tasks per node", on_first),
            nodes.size() < 2 || nodes[0] == nodes[1]};
}

class IorSession final : public Session {
 public:
    explicit IorSession(std::vector<IorSettings> tests) : settings_(std::move(tests)) {
        choose_driver();
        for (IorSettings& s : settings_) {
            if (s.collective && !uses_mpi(s)) {
                s.collective = false;
                s.add_note("-c is for MPIIO and HDF5; with " + s.api + " the calls are independent, as in IOR");
            }
            for (const std::string& doubt : check_settings(s, settings_.size() > 1)) {
                s.add_note(doubt);
            }
        }
    }

    bool needs_mpi() const override {
        return std::any_of(settings_.begin(), settings_.end(),
                           [](const IorSettings& s) { return uses_mpi(s) && !s.dry_run; });
    }
    bool prefers_site_mpi() const override {
        return std::any_of(settings_.begin(), settings_.end(), uses_format_library);
    }

    void begin(const SessionSetup& setup) override {
        placement_ = make_task_placement(setup);
        report_stream_ = setup.report_stream;
        now_ = static_cast<std::int64_t>(std::time(nullptr));
        const IorSettings& first = settings_.front();
        check_writable(settings_.back().summary_file);
        std::ostream& out = settings_.back().summary_file.empty() ? std::cout : file_;
        output_writer_ = settings_.back().format == Format::json
                             ? make_json(out, first.verbose, report_stream_ == ReportStream::output)
                         : settings_.back().format == Format::csv ? make_csv(out)
                                                                  : make_human(out, first.verbose);
        for (IorSettings& s : settings_) {
            if (s.tasks > placement_.tasks) {
                s.add_note("-N asks for " + std::to_string(s.tasks) + " tasks, but there are " +
                           std::to_string(placement_.tasks) + ": these take part");
            }
            if (s.reorder != 0 && placement_.nodes == 1 && placement_.fills_nodes_in_order) {
                s.add_note(
                    "-C moves on by whole nodes, and there is one node: each task reads its own data, from the "
                    "page cache if it is there");
            }
            if (s.mpi_preallocate && s.api == "MPIIO" && !s.collective && !s.file_per_process) {
                s.add_note("--mpiio.preallocate reserves blocks with -c or -F only; here it sets the size of the file");
            }
            if (s.collective && s.file_per_process) {
                s.add_note("-c with -F: a file of one task is opened by this one alone, so its calls are independent");
            }
            if (s.direct && s.api != "POSIX" && s.api != "AIO") {
                s.add_note("O_DIRECT is for POSIX and AIO; with " + s.api + " it has no effect, as in IOR");
            }
        }
        std::string command;
        for (const std::string& word : setup.command) {
            command += (command.empty() ? "" : " ") + word;
        }
        command_ = command;
    }

    std::optional<std::string> next_plan() override {
        while (tests_.size() < settings_.size()) {
            const IorSettings& s = settings_[tests_.size()];
            auto test = std::make_unique<IorTest>();
            test->number = static_cast<int>(tests_.size());
            test->settings = &s;
            test->placement = placement_;
            test->start_date = format_current_date();
            test->signature = s.signature != 0 ? s.signature : now_;
            tests_.push_back(std::move(test));
            warn_of_notes(s);
            // A status file written by this test is for a later one.
            const std::optional<std::int64_t> status = s.write ? std::nullopt : read_status(s.status_file);
            if (!s.status_file.empty() && !s.write && !status) {
                print_warning("the status file " + s.status_file +
                              " does not say how many transfers there are: all are read");
            }
            const Translation translation = translate(s, placement_, tests_.back()->number, now_, status);
            if (s.dry_run) {
                show_test();
                end_plan(0);
                continue;
            }
            results_ = std::make_unique<IorResults>(translation.steps);
            return to_plan_text(translation.plan);
        }
        return std::nullopt;
    }

    void read_record_line(std::string_view type, const nlohmann::ordered_json& content) override {
        show_test();
        if (type == "error" && content.value("errno", 0) != 0) {
            output_writer_->write_error(content.value("operation", std::string()) + "(\"" +
                                        content.value("path", std::string()) +
                                        "\") failed: " + std::strerror(content.value("errno", 0)));
        }
        if (results_->read_record_line(type, content)) {
            IorTest& test = *tests_.back();
            test.measurements = results_->measurements();
            check_measurement(test, results_->current());
            output_writer_->write_measurement(test, results_->current());
        }
    }

    void end_plan(int code) override {
        IorTest& test = *tests_.back();
        if (results_) {
            test.measurements = results_->measurements();
        }
        if (shown_test_count_ == tests_.size()) {
            output_writer_->end_test(test);
        }
        if (code == 0 || code == exit_mismatch) {
            print_warning_if_any(store_status(test));
        }
        warn_of_mismatches(test);
        results_.reset();
    }

    int finish_session(int code) override {
        if (!is_heading_shown_ && code != 0) {
            return code;  // no test has run; the reason was printed
        }
        std::vector<const IorTest*> all;
        for (const auto& test : tests_) {
            all.push_back(test.get());
        }
        show_heading();
        output_writer_->end_output(all, code == 0 || code == exit_mismatch);
        print_figures(all);
        const bool good = settings_.back().summary_file.empty() ? std::cout.flush().good() : file_.flush().good();
        if (!good) {
            print_warning(
                "the results could not be written" +
                (settings_.back().summary_file.empty() ? std::string() : " to " + settings_.back().summary_file) +
                ": is the disk full?");
            return code == 0 ? exit_environment : code;
        }
        return code;
    }

 private:
    static constexpr int exit_environment = 3, exit_mismatch = 4;

    /// A driver of ROMIO before a path: here files keep their names, and ROMIO hears of it by its own variable, which
    /// holds for all files of the program. Other MPI-IOs have no such words, and none of these drivers.
    void choose_driver() const {
        std::set<std::string> drivers;
        for (const IorSettings& s : settings_) {
            if (s.api == "MPIIO") {
                drivers.insert(romio_driver(s));
            }
        }
        if (drivers.size() > 1) {
            throw_argument_error(
                "the tests name several drivers of ROMIO before their files, and ROMIO takes one for a whole program "
                "here: start each alone");
        }
        const std::string driver = drivers.empty() ? std::string() : *drivers.begin();
        if (!driver.empty()) {
            setenv("ROMIO_FSTYPE_FORCE", driver.c_str(), 1);
        }
    }

    /// Only when there is something to show: printing the plans begins a session too.
    void show_heading() {
        if (!is_heading_shown_) {
            is_heading_shown_ = true;
            open_results(settings_.back().summary_file);
            output_writer_->begin_output(command_);
        }
    }

    void show_test() {
        if (shown_test_count_ < tests_.size()) {
            show_heading();
            shown_test_count_ = tests_.size();
            output_writer_->begin_test(*tests_.back());
        }
    }

    void print_figures(const std::vector<const IorTest*>& all) {
        if (report_stream_ == ReportStream::output && settings_.back().format == Format::human) {
            print_sonde_figures(settings_.back().summary_file.empty() ? std::cout : file_, all);
        } else if (report_stream_ == ReportStream::errors && !do_errors_share_output()) {
            std::cout.flush();
            print_sonde_figures(std::cerr, all);
        }
    }

    /// Whether JSON or CSV goes to the file to which errors go (`> log 2>&1`), where other lines would break it.
    bool do_errors_share_output() const {
        struct stat output {
        }, errors{};
        return settings_.back().format != Format::human && settings_.back().summary_file.empty() &&
               ::fstat(STDOUT_FILENO, &output) == 0 && ::fstat(STDERR_FILENO, &errors) == 0 &&
               output.st_dev == errors.st_dev && output.st_ino == errors.st_ino;
    }

    /// Before anything is done, and without making the file.
    static void check_writable(const std::string& path) {
        const std::size_t slash = path.rfind('/');
        const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
        const bool there = ::access(path.c_str(), F_OK) == 0;
        if (!path.empty() && ::access(there ? path.c_str() : folder.c_str(), W_OK) != 0) {
            throw plan::PlanError("summaryFile " + path + " cannot be written: " + std::strerror(errno));
        }
    }

    void open_results(const std::string& path) {
        if (path.empty()) {
            return;
        }
        file_.open(path, std::ios::trunc);
        std::cout << "Writing output to " << path << "\n" << std::flush;
    }

    static void warn_of_notes(const IorSettings& s) {
        for (const std::string& note : s.notes) {
            print_warning(note);
        }
        if (s.warnings_are_errors && !s.notes.empty()) {
            throw plan::PlanError(s.notes.front() + " (--warningAsErrors)");
        }
        if (s.mpi_show_hints && uses_mpi(s)) {
            std::string text = "hints given to MPI_File_open:";
            for (const auto& [key, value] : s.hints) {
                text += " " + key + "=" + value;
            }
            print_warning(s.hints.empty() ? text + " none" : text);
        }
    }

    /// In the output where IOR has it there, else beside it.
    void warn_in_output(const std::string& sentence) {
        if (!output_writer_->write_warning(sentence)) {
            print_warning(sentence);
        }
    }

    /// Sizes of the files of a test, which are still there.
    static double bytes_on_disk(const IorTest& test, const IorMeasurement& measurement) {
        const IorSettings& s = *test.settings;
        double bytes = 0;
        for (int task = 0; task < (s.file_per_process ? test.placement.active_tasks(s) : 1); ++task) {
            struct stat info {};
            const std::string suffix = s.multiple_files ? "." + std::to_string(measurement.step.repetition) : "";
            bytes +=
                ::stat((get_test_path(s, task) + suffix).c_str(), &info) == 0 ? static_cast<double>(info.st_size) : 0;
        }
        return bytes;
    }

    void check_measurement(const IorTest& test, const IorMeasurement& measurement) {
        const IorSettings& s = *test.settings;
        if (measurement.step.kind != IorStep::StepKind::write && measurement.step.kind != IorStep::StepKind::read) {
            return;
        }
        const double expected = test.expected_bytes();
        if (measurement.bytes != expected) {
            char text[100];
            for (const auto& [format, bytes] :
                 {std::pair{"Expected aggregate file size       = %.0f", expected},
                  std::pair{"Stat() of aggregate file size      = %.0f", bytes_on_disk(test, measurement)},
                  std::pair{"Using actual aggregate bytes moved = %.0f", measurement.bytes}}) {
                std::snprintf(text, sizeof text, format, bytes);
                warn_in_output(text);
            }
        }
        if (s.outlier_seconds > 0) {
            warn_of_outliers(s, measurement);
        }
        if (!s.rank_details_file.empty()) {
            print_warning_if_any(add_rank_details(s, measurement));
        }
    }

    static void warn_of_outliers(const IorSettings& s, const IorMeasurement& measurement) {
        const auto look = [&](const char* label, double TaskTimes::*member) {
            double mean = 0;
            for (const TaskTimes& task : measurement.tasks) {
                mean += task.*member / static_cast<double>(measurement.tasks.size());
            }
            for (const TaskTimes& task : measurement.tasks) {
                if (std::abs(task.*member - mean) > static_cast<double>(s.outlier_seconds)) {
                    char text[200];
                    std::snprintf(text, sizeof text, "task %d, %s %s is %f s (mean %f s)", task.task,
                                  measurement.writes() ? "write" : "read", label, task.*member, mean);
                    print_warning(text);
                }
            }
        };
        look("elapsed transfer time", &TaskTimes::transfer_s);
        look("elapsed time", &TaskTimes::total_s);
    }

    void warn_of_mismatches(const IorTest& test) {
        for (const IorMeasurement& measurement : test.measurements) {
            if (measurement.mismatches > 0) {
                warn_in_output("Incorrect data on " +
                               std::string(measurement.step.kind == IorStep::StepKind::check_write ? "write" : "read") +
                               " (" + std::to_string(measurement.mismatches) + " errors found).");
            }
        }
    }

    std::vector<IorSettings> settings_;
    std::vector<std::unique_ptr<IorTest>> tests_;
    std::unique_ptr<IorResults> results_;
    std::unique_ptr<OutputWriter> output_writer_;
    std::string command_;
    bool is_heading_shown_ = false;
    std::size_t shown_test_count_ = 0;  ///< tests whose heading is out
    TaskPlacement placement_;
    ReportStream report_stream_ = ReportStream::errors;
    std::int64_t now_ = 0;
    std::ofstream file_;
};

}  // namespace
}  // namespace sonde::dialects::ior

namespace sonde::dialects {

extern const Dialect ior_dialect;
const Dialect ior_dialect{
    .name = "ior",
    .summary = "the command line, the files and the output of IOR 4.1",
    .make_session = [](const std::vector<std::string>& arguments) -> std::unique_ptr<Session> {
        return std::make_unique<ior::IorSession>(ior::parse_arguments(arguments));
    },
};

}  // namespace sonde::dialects
