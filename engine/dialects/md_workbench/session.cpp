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

std::string stamp() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
    return text.data();
}

class WorkbenchSession final : public Session {
 public:
    explicit WorkbenchSession(WorkbenchSettings settings) : s_(std::move(settings)) {}

    void begin(const Setting& setting) override {
        setting_ = setting;
        seed_ = s_.seed.value_or(static_cast<std::int64_t>(std::time(nullptr)) & INT32_MAX);
        began_ = std::time(nullptr);
        const bool only_shown = setting.command.empty();  // then the earlier phases may not have run
        std::error_code failure;
        is_clean_ = !only_shown && s_.clean && !s_.create && !s_.bench && s_.api != "DUMMY" &&
                    !std::filesystem::exists(s_.directory, failure);
        if (is_clean_) {
            std::cerr << "sonde-engine: md-workbench: -o " << s_.directory << " is not there: nothing to clean up\n";
            return;
        }
        first_ = s_.start_item > 0 ? s_.start_item : s_.create || only_shown ? 0 : read_position();
        if (!setting.command.empty()) {
            heading();
        }
    }

    std::optional<std::string> next() override {
        std::optional<WorkbenchStep> step = is_clean_ ? std::nullopt : next_step();
        if (!step) {
            return std::nullopt;
        }
        step_ = *step;
        measured_ = WorkbenchPhase{};
        std::error_code failure;
        const bool exists = std::filesystem::exists(s_.directory, failure);
        if (step_.phase != PhaseKind::precreate && !exists && s_.api != "DUMMY" && !setting_.command.empty()) {
            throw PlanError("-o " + s_.directory + " is not there: run the precreate phase (-1) first");
        }
        return to_plan_text(plan_of(s_, step_, seed_, exists || step_.phase != PhaseKind::precreate));
    }

    void line(std::string_view type, const ordered_json& content) override { measured_.line(type, content); }

    void ended(int code) override {
        if (step_.phase == PhaseKind::benchmark && !s_.read_only) {
            first_ += rounds();
        }
        if (code == 2 || code == 3 || setting_.command.empty()) {
            return;
        }
        report();
        if (code == 0 || code == 4) {
            finished_ = step_;
        }
    }

    int finish(int code) override {
        if (code == 2 || code == 3) {
            return code;
        }
        if (s_.clean && finished_ && finished_->phase == PhaseKind::cleanup) {
            if (s_.api != "DUMMY" && ::rmdir(s_.directory.c_str()) != 0) {
                std::cout << "Unable to remove directory " << s_.directory << "\n";
            }
        } else if (!s_.clean) {
            code = write_position(code);
        }
        if (!s_.quiet) {
            std::cout << "Total runtime: " << (std::time(nullptr) - began_) << "s time: " << stamp() << "\n";
        }
        std::cout.flush();
        return code;
    }

 private:
    /// Steps in order: precreate, the iterations of the benchmark (with -T each eight times), cleanup.
    std::optional<WorkbenchStep> next_step() {
        const int turns = s_.adaptive ? 8 : 1;
        while (at_ < 2 + s_.iterations * turns) {
            const int step = at_++;
            if (step == 0) {
                if (s_.create) {
                    return WorkbenchStep{PhaseKind::precreate, 0, 0, first_};
                }
            } else if (step <= s_.iterations * turns) {
                const int turn = (step - 1) % turns;
                // With -T: without waiting first, then from 1/16 on twice as long each time.
                const double wait = !s_.adaptive ? s_.wait : turn == 0 ? 0 : 0.0625 * (1 << (turn - 1));
                if (s_.bench && s_.objects > 0) {
                    return WorkbenchStep{PhaseKind::benchmark, (step - 1) / turns, wait, first_};
                }
            } else if (s_.clean) {
                return WorkbenchStep{PhaseKind::cleanup, 0, 0, first_};
            }
        }
        return std::nullopt;
    }

    /// How many objects of each set the last iteration has moved on by.
    std::uint64_t rounds() const {
        if (s_.stonewall_s == 0 || measured_.task_calls.empty()) {
            return s_.objects;
        }
        return measured_.most_calls / (static_cast<std::uint64_t>(s_.sets) * 4);
    }

    void heading() {
        if (!s_.quiet) {
            std::cout << "Args: " << setting_.command.front();
            for (std::size_t i = 1; i < setting_.command.size(); ++i) {
                std::cout << " \"" << setting_.command[i] << "\"";
            }
            std::cout << "\n";
        }
        std::string map;
        for (const int node : setting_.node_of) {
            map += node == setting_.node_of.front() ? '1' : '0';
        }
        std::cout << "Nodemap: " << map << "\n";
        if (s_.start_item > 0) {
            std::cout << "Using start position " << s_.start_item << "\n";
        }
        if (!s_.quiet) {
            const std::uint64_t of_set = s_.objects * static_cast<std::uint64_t>(s_.iterations) + s_.precreate;
            const auto sets = static_cast<std::uint64_t>(s_.sets) * static_cast<std::uint64_t>(setting_.tasks);
            std::array<char, 256> text{};
            std::snprintf(text.data(), text.size(),
                          "MD-Workbench total objects: %" PRIu64
                          " workingset size: %.3f MiB (version: 4.1.0+sonde) time: ",
                          of_set * sets, static_cast<double>(sets * s_.precreate * s_.size) / 0x1p20);
            std::cout << text.data() << stamp() << "\n";
            if (s_.objects > s_.precreate) {
                std::cout << "WARNING: num > precreate, this may cause the situation that no objects are available to "
                             "read\n";
            }
            if (s_.detailed) {
                std::cout << "phase\t\td name\tcreate\tdelete\tob "
                             "nam\tcreate\tread\tstat\tdelete\tt_inc_b\tt_no_bar\tthp\tmax_t\n";
            }
        }
        std::cout.flush();
        for (const std::string& note : s_.notes) {
            std::cerr << "sonde-engine: md-workbench: " << note << "\n";
        }
    }

    void report() {
        std::cout << line_of(s_, step_, measured_, std::nullopt) << "\n";
        for (std::size_t task = 0; s_.process_reports && task < measured_.task_times.size(); ++task) {
            std::cout << task << ": " << line_of(s_, step_, measured_, task) << "\n";
        }
        std::cout.flush();
        std::ostream& out = setting_.report_stream == ReportStream::output ? std::cout : std::cerr;
        for (const std::string& finding : measured_.findings) {
            if (setting_.report_stream != ReportStream::none) {
                out << "sonde: " << name_of(step_.phase) << ": " << finding << "\n";
            }
        }
    }

    std::uint64_t read_position() const {
        std::ifstream file(s_.info_file);
        std::string word;
        long long position = -1;
        if (!(file >> word >> position) || word != "pos:" || position < 0) {
            throw PlanError("--run-info-file " + s_.info_file +
                            " does not say where to begin (\"pos: N\"): run the precreate phase (-1) with the same "
                            "file first, or give --start-item");
        }
        return static_cast<std::uint64_t>(position);
    }

    int write_position(int code) const {
        std::ofstream file(s_.info_file, std::ios::trunc);
        file << "pos: " << first_ << "\n";
        if (!file.flush()) {
            std::cerr << "sonde-engine: md-workbench: --run-info-file " << s_.info_file
                      << " cannot be written: " << std::strerror(errno) << "\n";
            return code == 0 ? 3 : code;
        }
        return code;
    }

    WorkbenchSettings s_;
    Setting setting_;
    WorkbenchStep step_;
    std::optional<WorkbenchStep> finished_;
    WorkbenchPhase measured_;
    std::int64_t seed_ = 0;
    std::uint64_t first_ = 0;
    bool is_clean_ = false;  ///< -3 alone, and there is nothing to remove
    std::time_t began_ = 0;
    int at_ = 0;
};

}  // namespace
}  // namespace sonde::dialects::md_workbench

namespace sonde::dialects {

extern const Dialect md_workbench_dialect;
const Dialect md_workbench_dialect{
    .name = "md-workbench",
    .summary = "md-workbench's options and lines: a working set of small files that moves on",
    .read = [](const std::vector<std::string>& arguments) -> std::unique_ptr<Session> {
        return std::make_unique<md_workbench::WorkbenchSession>(md_workbench::parse_arguments(arguments));
    },
};

}  // namespace sonde::dialects
