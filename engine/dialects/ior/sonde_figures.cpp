// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/sonde_figures.hpp"

#include <algorithm>
#include <iterator>

namespace sonde::dialects::ior {
namespace {

std::string format_duration(double seconds) {
    return seconds >= 1      ? format_text("%.3g s", seconds)
           : seconds >= 1e-3 ? format_text("%.3g ms", seconds * 1e3)
                             : format_text("%.3g us", seconds * 1e6);
}

/// Transfers, single calls, the slowest task and what else is known of a point, parted by semicolons.
std::string format_figures(const IorTest& test, const IorMeasurement& measurement) {
    const char* kind = measurement.writes() ? "write" : "read";
    std::string figures;
    const auto say = [&figures](const std::string& more) { figures += (figures.empty() ? "" : "; ") + more; };
    if (measurement.sonde_figures.contains("rates") && measurement.sonde_figures.at("rates").contains("transfer")) {
        const auto& rate = measurement.sonde_figures.at("rates").at("transfer");
        say(format_text("transfers %.2f MiB/s, %.0f calls/s", rate.value("bytes_per_s", 0.0) / mebi,
                        rate.value("ops_per_s", 0.0)));
    }
    if (measurement.sonde_figures.contains("latency") && measurement.sonde_figures.at("latency").contains(kind)) {
        const auto& latency = measurement.sonde_figures.at("latency").at(kind);
        const auto ns = [&latency](const char* name) { return format_duration(latency.value(name, 0.0) / 1e9); };
        say("one call p50 " + ns("p50_ns") + ", p99 " + ns("p99_ns") + ", max " + ns("max_ns"));
    }
    if (measurement.sonde_figures.contains("imbalance") && measurement.tasks.size() > 1 &&
        !measurement.sonde_figures.at("imbalance").value("slowest", nlohmann::ordered_json::array()).empty()) {
        const auto& slowest = measurement.sonde_figures.at("imbalance").at("slowest")[0];
        say(format_text("slowest task %d on %s, %.2f MiB/s", slowest.value("task", 0),
                        slowest.value("host", std::string()).c_str(), slowest.value("bytes_per_s", 0.0) / mebi));
    }
    if (measurement.compare_s > 0) {
        say("comparing took " + format_duration(measurement.compare_s) + ", which is in IOR's bw and not in this");
    }
    if (test.settings->wear_out && measurement.stonewall_seconds > 0) {
        say(format_text("until the deadline all tasks together %.2f MiB/s (Stonewall(MiB) is that of one)",
                        measurement.stonewall_bytes / measurement.stonewall_seconds / mebi));
    }
    return figures;
}

/// Findings that differ only in their numbers are printed once, with the count of the others.
class UniqueFindings {
 public:
    void add(const std::string& kind, const std::string& line, const std::string& finding) {
        std::string key = kind;
        std::copy_if(finding.begin(), finding.end(), std::back_inserter(key),
                     [](char c) { return c < '0' || c > '9'; });
        const auto match = std::find_if(findings_.begin(), findings_.end(),
                                        [&key](const UniqueFinding& entry) { return entry.key == key; });
        if (match == findings_.end()) {
            findings_.push_back({key, line, 0});
        } else {
            ++match->repetitions;
        }
    }
    void print(std::ostream& out) const {
        for (const UniqueFinding& finding : findings_) {
            out << finding.line
                << (finding.repetitions > 0 ? format_text(" (and %d times more)", finding.repetitions) : std::string())
                << "\n";
        }
    }

 private:
    struct UniqueFinding {
        std::string key, line;
        int repetitions = 0;
    };
    std::vector<UniqueFinding> findings_;
};

}  // namespace

void print_sonde_figures(std::ostream& out, const std::vector<const IorTest*>& tests) {
    UniqueFindings findings;
    bool headed = false;
    for (const IorTest* test : tests) {
        for (const IorMeasurement& measurement : test->measurements) {
            if (measurement.step.kind != IorStep::StepKind::write && measurement.step.kind != IorStep::StepKind::read) {
                continue;
            }
            if (!headed) {
                headed = true;
                out << "sonde: next to IOR's figures: bw is bytes / (last close - first open); transfers alone are "
                       "bytes / (last - first transfer)\n"
                       "sonde: Latency(s) above is the mean of the best task; below are single calls of all tasks\n";
            }
            const char* kind = measurement.writes() ? "Write" : "Read";
            const std::string who =
                format_text("sonde: %s of test %d, iteration %d: ", kind, test->number, measurement.step.repetition);
            out << who << format_figures(*test, measurement) << "\n";
            for (const std::string& finding : measurement.findings) {
                findings.add(kind, who + finding, finding);
            }
        }
    }
    findings.print(out);
}

}  // namespace sonde::dialects::ior
