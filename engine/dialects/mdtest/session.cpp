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

std::string stamp() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%m/%d/%Y %H:%M:%S", &parts);
    return text.data();
}

template <class... Values>
void say(const char* format, Values... values) {
    std::array<char, 4096> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    std::cout << text.data() << std::flush;
}

class MdtestSession final : public Session {
 public:
    explicit MdtestSession(MdtestSettings settings) : s_(std::move(settings)) { shape_of(s_, std::nullopt); }

    void begin(const Setting& setting) override {
        setting_ = setting;
        if (s_.last > setting.tasks) {
            throw PlanError("-l " + std::to_string(s_.last) + " is more than the " + std::to_string(setting.tasks) +
                            " tasks that there are");
        }
        last_ = s_.last == 0 ? setting.tasks : s_.last;
        tasks_ = (s_.last == 0 ? setting.tasks : s_.first) - s_.step;
        now_ = static_cast<std::int64_t>(std::time(nullptr));
        read_status();
        if (!s_.rank_details.empty() && !setting.command.empty() && !begin_details(s_.rank_details)) {
            throw PlanError("--saveRankPerformanceDetails " + s_.rank_details +
                            " cannot be written: " + std::strerror(errno));
        }
        if (!setting.command.empty()) {
            heading();
        }
    }

    std::optional<std::string> next() override {
        if (tasks_ + s_.step > last_) {
            return std::nullopt;
        }
        tasks_ += s_.step;
        results_ = MdtestResults(s_.iterations);
        shape_ = shape_of(s_, expected_);
        if (s_.iterations == 0) {
            ended(0);
            return next();
        }
        std::error_code failure;
        const bool exists = std::filesystem::exists(s_.directory, failure);
        const ordered_json plan = plan_of(s_, setting_, tasks_, shape_, expected_, exists, now_);
        if (plan.at("phases").empty()) {  // no items to look at, and no tree to make or remove
            ended(0);
            return next();
        }
        return to_plan_text(plan);
    }

    void line(std::string_view type, const ordered_json& content) override {
        if (type == "node" && content.value("node", 0) == 0) {
            place_of_test(content);
        }
        if (type == "error" && content.value("operation", std::string()) == "stat" &&
            content.value("name", std::string()) == "ENOENT") {
            const auto phase = phase_named(content.value("phase", std::string()));
            say("WARNING: unable to stat %s %s\n", phase && phase->test == dir_stat ? "directory" : "file",
                content.value("path", std::string()).c_str());
        }
        results_.line(type, content, tasks_);
    }

    void ended(int code) override {
        if (code == 2 || code == 3 || setting_.command.empty()) {
            return;
        }
        results_.share_out(tasks_, s_);
        if (s_.verbose > 0) {
            print_tests(std::cout, results_, s_, shape_);
        }
        print_deadlines(std::cout, results_);
        const bool times = s_.print_time && !s_.print_both;
        print_summary(std::cout, results_, s_, shape_, tasks_, times);
        if (s_.print_both) {
            print_summary(std::cout, results_, s_, shape_, tasks_, true);
        }
        if (results_.mismatches > 0) {
            say("\nERROR: verifying the data on read (%llu errors)! Take the performance values with care!\n",
                static_cast<unsigned long long>(results_.mismatches));
        }
        tell_own(code);
        save(code);
    }

    int finish(int code) override {
        if (heading_done_) {
            say("-- finished at %s --\n", stamp().c_str());
        }
        return code;
    }

 private:
    void heading() {
        heading_done_ = true;
        say("-- started at %s --\n\n", stamp().c_str());
        say("mdtest-4.1.0+sonde was launched with %d total task(s) on %d node(s)\n", setting_.tasks, setting_.nodes);
        std::string command = setting_.command.front();
        for (std::size_t i = 1; i < setting_.command.size(); ++i) {
            command += " '" + setting_.command[i] + "'";
        }
        std::cout << "Command line used: " << command << "\n";
        for (const std::string& warning : s_.warnings) {
            std::cout << "WARNING: " << warning << "\n";
        }
        if (s_.verbose > 0) {
            print_settings(std::cout, s_);
        }
        std::string map;
        for (const int node : setting_.node_of) {
            map += node == setting_.node_of.front() ? '1' : '0';
        }
        std::cout << "Nodemap: " << map << "\n" << std::flush;
    }

    void tell_own(int code) {
        if (setting_.report_stream == ReportStream::none) {
            return;
        }
        std::cout.flush();
        std::ostream& out = setting_.report_stream == ReportStream::output ? std::cout : std::cerr;
        print_ours(out, results_, s_);
        if (code != 0 && code != 4) {
            out << "sonde: not everything was done: the table shows what was\n";
        }
        out.flush();
    }

    /// Location and size of the test, printed once the record names the file system.
    void place_of_test(const ordered_json& node) {
        const ordered_json fs = node.value("file_system", ordered_json::object());
        say("Path                : %s\n", s_.directory.c_str());
        const double total = fs.value("total_bytes", 0.0);
        const double inodes = fs.value("inodes_total", 0.0);
        if (total > 0) {
            double size = total / (1U << 30U);
            const char* unit = size > 1024 ? "TiB" : "GiB";
            size = size > 1024 ? size / 1024 : size;
            say("FS                  : %.1f %s   Used FS: %2.1f%%   Inodes: %.1f Mi   Used Inodes: %2.1f%%\n", size,
                unit, 100 * (1 - fs.value("free_bytes", fs.value("available_bytes", 0.0)) / total),
                inodes / (1U << 20U), inodes > 0 ? 100 * (1 - fs.value("inodes_free", 0.0) / inodes) : 0.0);
        }
        if (s_.shift > 0) {
            say("Shifting ranks by %d for each phase.\n", shift_of(s_, setting_));
        }
        if (s_.random || s_.random_seed != 0) {
            say("random seed: %lld\n", static_cast<long long>(s_.random_seed != 0 ? s_.random_seed : now_));
        }
        if (s_.shared_file) {
            say("%d tasks, 1 file\n", tasks_);
        } else {
            const unsigned long long items = shape_.items * static_cast<std::uint64_t>(tasks_);
            say("%d tasks, %llu %s\n", tasks_, items,
                s_.files && s_.directories ? "files/directories"
                : s_.files                 ? "files"
                                           : "directories");
        }
    }

    void read_status() {
        if (s_.status_file.empty() || s_.create) {
            return;
        }
        std::ifstream file(s_.status_file);
        long long count = 0;
        if (file >> count && count > 0) {
            expected_ = static_cast<std::uint64_t>(count);
        } else {
            std::cerr << "sonde-engine: mdtest: could not read the stonewall status file " << s_.status_file << "; all "
                      << (s_.items > 0 ? s_.items : s_.items_per_dir) << " items are expected\n";
        }
    }

    void save(int code) {
        if (!s_.status_file.empty() && s_.create && s_.stonewall_s > 0 && (code == 0 || code == 4)) {
            std::ofstream file(s_.status_file, std::ios::trunc);
            file << results_.most_created;
            if (!file.flush()) {
                std::cerr << "sonde-engine: mdtest: cannot write the stonewall status file " << s_.status_file << "\n";
            }
        }
        if (!s_.rank_details.empty() && !results_.iteration.empty() &&
            !append_details(s_.rank_details, results_, shape_, tasks_)) {
            std::cerr << "sonde-engine: mdtest: cannot write " << s_.rank_details << "\n";
        }
    }

    MdtestSettings s_;
    Setting setting_;
    Shape shape_;
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
    .read = [](const std::vector<std::string>& arguments) -> std::unique_ptr<Session> {
        return std::make_unique<mdtest::MdtestSession>(mdtest::parse_arguments(arguments));
    },
};

}  // namespace sonde::dialects
