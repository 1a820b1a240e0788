// SPDX-License-Identifier: Apache-2.0
// One command line of mdtest from its words to its summary.
#include "dialects/dialect.hpp"
#include "dialects/mdtest/table.hpp"
#include "dialects/plan_text.hpp"
#include "plan/plan_error.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace sonde::dialects::mdtest {
namespace {

using nlohmann::ordered_json;
using plan::PlanError;

std::string format_current_time() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%m/%d/%Y %H:%M:%S", &parts);
    return text.data();
}

template <class... Values>
void print_text(const char* format, Values... values) {
    std::array<char, 4096> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    std::cout << text.data() << std::flush;
}

class MdtestSession final : public Session {
 public:
    explicit MdtestSession(MdtestSettings settings) : settings_(std::move(settings)) {
        count_tree(settings_, std::nullopt);
    }

    void begin(const SessionSetup& setup) override {
        setup_ = setup;
        if (settings_.last > setup.tasks) {
            throw PlanError("-l " + std::to_string(settings_.last) + " is more than the " +
                            std::to_string(setup.tasks) + " tasks that there are");
        }
        last_ = settings_.last == 0 ? setup.tasks : settings_.last;
        tasks_ = (settings_.last == 0 ? setup.tasks : settings_.first) - settings_.step;
        now_ = static_cast<std::int64_t>(std::time(nullptr));
        read_status();
        if (!settings_.rank_details.empty() && !setup.command.empty() &&
            !create_rank_details_file(settings_.rank_details)) {
            throw PlanError("--saveRankPerformanceDetails " + settings_.rank_details +
                            " cannot be written: " + std::strerror(errno));
        }
        if (!setup.command.empty()) {
            print_heading();
        }
    }

    std::optional<std::string> next_plan() override {
        if (tasks_ + settings_.step > last_) {
            return std::nullopt;
        }
        tasks_ += settings_.step;
        results_ = MdtestResults(settings_.iterations);
        tree_counts_ = count_tree(settings_, expected_);
        if (settings_.iterations == 0) {
            end_plan(0);
            return next_plan();
        }
        std::error_code failure;
        const bool exists = std::filesystem::exists(settings_.directory, failure);
        const ordered_json plan = build_plan(settings_, setup_, tasks_, tree_counts_, expected_, exists, now_);
        if (plan.at("phases").empty()) {  // no items to look at, and no tree to make or remove
            end_plan(0);
            return next_plan();
        }
        return to_plan_text(plan);
    }

    void read_record_line(std::string_view type, const ordered_json& content) override {
        if (type == "node" && content.value("node", 0) == 0) {
            print_file_system(content);
        }
        if (type == "error" && content.value("operation", std::string()) == "stat" &&
            content.value("name", std::string()) == "ENOENT") {
            const auto phase = parse_phase_id(content.value("phase", std::string()));
            print_text("WARNING: unable to stat %s %s\n", phase && phase->test == dir_stat ? "directory" : "file",
                       content.value("path", std::string()).c_str());
        }
        results_.read_record_line(type, content, tasks_);
    }

    void end_plan(int code) override {
        if (code == 2 || code == 3 || setup_.command.empty()) {
            return;
        }
        results_.divide_work_of_first_task(tasks_, settings_);
        if (settings_.verbose > 0) {
            print_tests(std::cout, results_, settings_, tree_counts_);
        }
        print_stonewalls(std::cout, results_);
        const bool times = settings_.print_time && !settings_.print_both;
        print_summary(std::cout, results_, settings_, tree_counts_, tasks_, times);
        if (settings_.print_both) {
            print_summary(std::cout, results_, settings_, tree_counts_, tasks_, true);
        }
        if (results_.mismatches > 0) {
            print_text("\nERROR: verifying the data on read (%llu errors)! Take the performance values with care!\n",
                       static_cast<unsigned long long>(results_.mismatches));
        }
        print_sonde_rates_if_asked(code);
        store_results(code);
    }

    int finish_session(int code) override {
        if (heading_done_) {
            print_text("-- finished at %s --\n", format_current_time().c_str());
        }
        return code;
    }

 private:
    void print_heading() {
        heading_done_ = true;
        print_text("-- started at %s --\n\n", format_current_time().c_str());
        print_text("mdtest-4.1.0+sonde was launched with %d total task(s) on %d node(s)\n", setup_.tasks, setup_.nodes);
        std::string command = setup_.command.front();
        for (std::size_t i = 1; i < setup_.command.size(); ++i) {
            command += " '" + setup_.command[i] + "'";
        }
        std::cout << "Command line used: " << command << "\n";
        for (const std::string& warning : settings_.warnings) {
            std::cout << "WARNING: " << warning << "\n";
        }
        if (settings_.verbose > 0) {
            print_settings(std::cout, settings_);
        }
        std::string map;
        for (const int node : setup_.node_of) {
            map += node == setup_.node_of.front() ? '1' : '0';
        }
        std::cout << "Nodemap: " << map << "\n" << std::flush;
    }

    void print_sonde_rates_if_asked(int code) {
        if (setup_.report_stream == ReportStream::none) {
            return;
        }
        std::cout.flush();
        std::ostream& out = setup_.report_stream == ReportStream::output ? std::cout : std::cerr;
        print_sonde_rates(out, results_, settings_);
        if (code != 0 && code != 4) {
            out << "sonde: not everything was done: the table shows what was\n";
        }
        out.flush();
    }

    /// Location and size of the test, printed once the record names the file system.
    void print_file_system(const ordered_json& node) {
        const ordered_json fs = node.value("file_system", ordered_json::object());
        print_text("Path                : %s\n", settings_.directory.c_str());
        const double total = fs.value("total_bytes", 0.0);
        const double inodes = fs.value("inodes_total", 0.0);
        if (total > 0) {
            double size = total / (1U << 30U);
            const char* unit = size > 1024 ? "TiB" : "GiB";
            size = size > 1024 ? size / 1024 : size;
            print_text("FS                  : %.1f %s   Used FS: %2.1f%%   Inodes: %.1f Mi   Used Inodes: %2.1f%%\n",
                       size, unit, 100 * (1 - fs.value("free_bytes", fs.value("available_bytes", 0.0)) / total),
                       inodes / (1U << 20U), inodes > 0 ? 100 * (1 - fs.value("inodes_free", 0.0) / inodes) : 0.0);
        }
        if (settings_.shift > 0) {
            print_text("Shifting ranks by %d for each phase.\n", compute_rank_shift(settings_, setup_));
        }
        if (settings_.random || settings_.random_seed != 0) {
            print_text("random seed: %lld\n",
                       static_cast<long long>(settings_.random_seed != 0 ? settings_.random_seed : now_));
        }
        if (settings_.shared_file) {
            print_text("%d tasks, 1 file\n", tasks_);
        } else {
            const unsigned long long items = tree_counts_.items * static_cast<std::uint64_t>(tasks_);
            print_text("%d tasks, %llu %s\n", tasks_, items,
                       settings_.files && settings_.directories ? "files/directories"
                       : settings_.files                        ? "files"
                                                                : "directories");
        }
    }

    void read_status() {
        if (settings_.status_file.empty() || settings_.create) {
            return;
        }
        std::ifstream file(settings_.status_file);
        long long count = 0;
        if (file >> count && count > 0) {
            expected_ = static_cast<std::uint64_t>(count);
        } else {
            std::cerr << "sonde-engine: mdtest: could not read the stonewall status file " << settings_.status_file
                      << "; all " << (settings_.items > 0 ? settings_.items : settings_.items_per_dir)
                      << " items are expected\n";
        }
    }

    void store_results(int code) {
        if (!settings_.status_file.empty() && settings_.create && settings_.stonewall_s > 0 &&
            (code == 0 || code == 4)) {
            std::ofstream file(settings_.status_file, std::ios::trunc);
            file << results_.max_files_of_task;
            if (!file.flush()) {
                std::cerr << "sonde-engine: mdtest: cannot write the stonewall status file " << settings_.status_file
                          << "\n";
            }
        }
        if (!settings_.rank_details.empty() && !results_.results_by_iteration.empty() &&
            !append_rank_details(settings_.rank_details, results_, tree_counts_, tasks_)) {
            std::cerr << "sonde-engine: mdtest: cannot write " << settings_.rank_details << "\n";
        }
    }

    MdtestSettings settings_;
    SessionSetup setup_;
    TreeCounts tree_counts_;
    MdtestResults results_;
    std::optional<std::uint64_t> expected_;
    int tasks_ = 0, last_ = 0;
    std::int64_t now_ = 0;
    bool heading_done_ = false;
};

}  // namespace
}  // namespace sonde::dialects::mdtest

namespace sonde::dialects {

extern const Dialect mdtest_dialect;
const Dialect mdtest_dialect{
    .name = "mdtest",
    .summary = "mdtest's options and table: create, stat, read, rename and remove files and directories",
    .make_session = [](const std::vector<std::string>& arguments) -> std::unique_ptr<Session> {
        return std::make_unique<mdtest::MdtestSession>(mdtest::parse_arguments(arguments));
    },
};

}  // namespace sonde::dialects
