// SPDX-License-Identifier: Apache-2.0
// One command line of md-workbench from its words to its last line. Each phase is a plan of its own, because where one
// begins is known only when the one before it has ended.
#include "dialects/dialect.hpp"
#include "dialects/md_workbench/results.hpp"
#include "dialects/plan_text.hpp"
#include "plan/plan_error.hpp"

#include <unistd.h>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace sonde::dialects::md_workbench {
namespace {

using nlohmann::ordered_json;
using plan::PlanError;

std::string format_current_time() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
    return text.data();
}

class WorkbenchSession final : public Session {
 public:
    explicit WorkbenchSession(WorkbenchSettings settings) : settings_(std::move(settings)) {}

    void begin(const SessionSetup& setup) override {
        setup_ = setup;
        seed_ = settings_.seed.value_or(static_cast<std::int64_t>(std::time(nullptr)) & INT32_MAX);
        start_time_ = std::time(nullptr);
        const bool only_shown = setup.command.empty();  // then the earlier phases may not have run
        std::error_code failure;
        is_clean_ = !only_shown && settings_.clean && !settings_.create && !settings_.bench &&
                    settings_.api != "DUMMY" && !std::filesystem::exists(settings_.directory, failure);
        if (is_clean_) {
            std::cerr << "sonde-engine: md-workbench: -o " << settings_.directory
                      << " is not there: nothing to clean up\n";
            return;
        }
        first_item_ = settings_.start_item > 0         ? settings_.start_item
                      : settings_.create || only_shown ? 0
                                                       : read_position();
        if (!setup.command.empty()) {
            print_heading();
        }
    }

    std::optional<std::string> next_plan() override {
        std::optional<WorkbenchStep> step = is_clean_ ? std::nullopt : next_step();
        if (!step) {
            return std::nullopt;
        }
        step_ = *step;
        phase_results_ = WorkbenchPhase{};
        std::error_code failure;
        const bool exists = std::filesystem::exists(settings_.directory, failure);
        if (step_.phase != PhaseKind::precreate && !exists && settings_.api != "DUMMY" && !setup_.command.empty()) {
            throw PlanError("-o " + settings_.directory + " is not there: run the precreate phase (-1) first");
        }
        return to_plan_text(build_plan(settings_, step_, seed_, exists || step_.phase != PhaseKind::precreate));
    }

    void read_record_line(std::string_view type, const ordered_json& content) override {
        phase_results_.read_record_line(type, content);
    }

    void end_plan(int code) override {
        if (step_.phase == PhaseKind::benchmark && !settings_.read_only) {
            first_item_ += count_advanced_rounds();
        }
        if (code == 2 || code == 3 || setup_.command.empty()) {
            return;
        }
        print_results();
        if (code == 0 || code == 4) {
            finished_step_ = step_;
        }
    }

    int finish_session(int code) override {
        if (code == 2 || code == 3) {
            return code;
        }
        if (settings_.clean && finished_step_ && finished_step_->phase == PhaseKind::cleanup) {
            if (settings_.api != "DUMMY" && ::rmdir(settings_.directory.c_str()) != 0) {
                std::cout << "Unable to remove directory " << settings_.directory << "\n";
            }
        } else if (!settings_.clean) {
            code = write_position(code);
        }
        if (!settings_.quiet) {
            std::cout << "Total runtime: " << (std::time(nullptr) - start_time_) << "s time: " << format_current_time()
                      << "\n";
        }
        std::cout.flush();
        return code;
    }

 private:
    /// Steps in order: precreate, the iterations of the benchmark (with -T each eight times), cleanup.
    std::optional<WorkbenchStep> next_step() {
        const int turns = settings_.adaptive ? 8 : 1;
        while (repetition_ < 2 + settings_.iterations * turns) {
            const int step = repetition_++;
            if (step == 0) {
                if (settings_.create) {
                    return WorkbenchStep{PhaseKind::precreate, 0, 0, first_item_};
                }
            } else if (step <= settings_.iterations * turns) {
                const int turn = (step - 1) % turns;
                // With -T: without waiting first, then from 1/16 on twice as long each time.
                const double wait = !settings_.adaptive ? settings_.wait : turn == 0 ? 0 : 0.0625 * (1 << (turn - 1));
                if (settings_.bench && settings_.objects > 0) {
                    return WorkbenchStep{PhaseKind::benchmark, (step - 1) / turns, wait, first_item_};
                }
            } else if (settings_.clean) {
                return WorkbenchStep{PhaseKind::cleanup, 0, 0, first_item_};
            }
        }
        return std::nullopt;
    }

    /// Number of objects by which the last iteration advanced the window of each set.
    std::uint64_t count_advanced_rounds() const {
        if (settings_.stonewall_s == 0 || phase_results_.calls_by_task.empty()) {
            return settings_.objects;
        }
        return phase_results_.max_task_calls / (static_cast<std::uint64_t>(settings_.sets) * 4);
    }

    void print_heading() {
        if (!settings_.quiet) {
            std::cout << "Args: " << setup_.command.front();
            for (std::size_t i = 1; i < setup_.command.size(); ++i) {
                std::cout << " \"" << setup_.command[i] << "\"";
            }
            std::cout << "\n";
        }
        std::string map;
        for (const int node : setup_.node_of) {
            map += node == setup_.node_of.front() ? '1' : '0';
        }
        std::cout << "Nodemap: " << map << "\n";
        if (settings_.start_item > 0) {
            std::cout << "Using start position " << settings_.start_item << "\n";
        }
        if (!settings_.quiet) {
            const std::uint64_t of_set =
                settings_.objects * static_cast<std::uint64_t>(settings_.iterations) + settings_.precreate;
            const auto sets = static_cast<std::uint64_t>(settings_.sets) * static_cast<std::uint64_t>(setup_.tasks);
            std::array<char, 256> text{};
            std::snprintf(text.data(), text.size(),
                          "MD-Workbench total objects: %" PRIu64
                          " workingset size: %.3f MiB (version: 4.1.0+sonde) time: ",
                          of_set * sets, static_cast<double>(sets * settings_.precreate * settings_.size) / 0x1p20);
            std::cout << text.data() << format_current_time() << "\n";
            if (settings_.objects > settings_.precreate) {
                std::cout << "WARNING: num > precreate, this may cause the situation that no objects are available to "
                             "read\n";
            }
            if (settings_.detailed) {
                std::cout << "phase\t\td name\tcreate\tdelete\tob "
                             "nam\tcreate\tread\tstat\tdelete\tt_inc_b\tt_no_bar\tthp\tmax_t\n";
            }
        }
        std::cout.flush();
        for (const std::string& note : settings_.notes) {
            std::cerr << "sonde-engine: md-workbench: " << note << "\n";
        }
    }

    void print_results() {
        std::cout << format_result_line(settings_, step_, phase_results_, std::nullopt) << "\n";
        for (std::size_t task = 0; settings_.process_reports && task < phase_results_.duration_s_by_task.size();
             ++task) {
            std::cout << task << ": " << format_result_line(settings_, step_, phase_results_, task) << "\n";
        }
        std::cout.flush();
        std::ostream& out = setup_.report_stream == ReportStream::output ? std::cout : std::cerr;
        for (const std::string& finding : phase_results_.findings) {
            if (setup_.report_stream != ReportStream::none) {
                out << "sonde: " << get_phase_name(step_.phase) << ": " << finding << "\n";
            }
        }
    }

    std::uint64_t read_position() const {
        std::ifstream file(settings_.info_file);
        std::string word;
        long long position = -1;
        if (!(file >> word >> position) || word != "pos:" || position < 0) {
            throw PlanError("--run-info-file " + settings_.info_file +
                            " does not say where to begin (\"pos: N\"): run the precreate phase (-1) with the same "
                            "file first, or give --start-item");
        }
        return static_cast<std::uint64_t>(position);
    }

    int write_position(int code) const {
        std::ofstream file(settings_.info_file, std::ios::trunc);
        file << "pos: " << first_item_ << "\n";
        if (!file.flush()) {
            std::cerr << "sonde-engine: md-workbench: --run-info-file " << settings_.info_file
                      << " cannot be written: " << std::strerror(errno) << "\n";
            return code == 0 ? 3 : code;
        }
        return code;
    }

    WorkbenchSettings settings_;
    SessionSetup setup_;
    WorkbenchStep step_;
    std::optional<WorkbenchStep> finished_step_;
    WorkbenchPhase phase_results_;
    std::int64_t seed_ = 0;
    std::uint64_t first_item_ = 0;
    bool is_clean_ = false;  ///< -3 alone, and there is nothing to remove
    std::time_t start_time_ = 0;
    int repetition_ = 0;
};

}  // namespace
}  // namespace sonde::dialects::md_workbench

namespace sonde::dialects {

extern const Dialect md_workbench_dialect;
const Dialect md_workbench_dialect{
    .name = "md-workbench",
    .summary = "md-workbench's options and lines: a working set of small files that moves on",
    .make_session = [](const std::vector<std::string>& arguments) -> std::unique_ptr<Session> {
        return std::make_unique<md_workbench::WorkbenchSession>(md_workbench::parse_arguments(arguments));
    },
};

}  // namespace sonde::dialects
