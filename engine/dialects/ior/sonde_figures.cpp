// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/sonde_figures.hpp"

#include <algorithm>
#include <iterator>

namespace sonde::dialects::ior {
namespace {

std::string duration(double seconds) {
    return seconds >= 1      ? text("%.3g s", seconds)
           : seconds >= 1e-3 ? text("%.3g ms", seconds * 1e3)
                             : text("%.3g us", seconds * 1e6);
}

/// Transfers, single calls, the slowest task and what else is known of a point, parted by semicolons.
std::string figures_of(const IorTest& test, const Point& point) {
    const char* kind = point.writes() ? "write" : "read";
    std::string figures;
    const auto say = [&figures](const std::string& more) { figures += (figures.empty() ? "" : "; ") + more; };
    if (point.figures.contains("rates") && point.figures.at("rates").contains("transfer")) {
        const auto& rate = point.figures.at("rates").at("transfer");
        say(text("transfers %.2f MiB/s, %.0f calls/s", rate.value("bytes_per_s", 0.0) / mebi,
                 rate.value("ops_per_s", 0.0)));
    }
    if (point.figures.contains("latency") && point.figures.at("latency").contains(kind)) {
        const auto& latency = point.figures.at("latency").at(kind);
        const auto ns = [&latency](const char* name) { return duration(latency.value(name, 0.0) / 1e9); };
        say("one call p50 " + ns("p50_ns") + ", p99 " + ns("p99_ns") + ", max " + ns("max_ns"));
    }
    if (point.figures.contains("imbalance") && point.tasks.size() > 1 &&
        !point.figures.at("imbalance").value("slowest", nlohmann::ordered_json::array()).empty()) {
        const auto& slowest = point.figures.at("imbalance").at("slowest")[0];
        say(text("slowest task %d on %s, %.2f MiB/s", slowest.value("task", 0),
                 slowest.value("host", std::string()).c_str(), slowest.value("bytes_per_s", 0.0) / mebi));
    }
    if (point.compare > 0) {
        say("comparing took " + duration(point.compare) + ", which is in IOR's bw and not in this");
    }
    if (test.settings->wear_out && point.stonewall_seconds > 0) {
        say(text("until the deadline all tasks together %.2f MiB/s (Stonewall(MiB) is that of one)",
                 point.stonewall_bytes / point.stonewall_seconds / mebi));
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
        const auto match =
            std::find_if(said_.begin(), said_.end(), [&key](const Said& entry) { return entry.key == key; });
        if (match == said_.end()) {
            said_.push_back({key, line, 0});
        } else {
            ++match->more;
        }
    }
    void tell(std::ostream& out) const {
        for (const Said& finding : said_) {
            out << finding.line << (finding.more > 0 ? text(" (and %d times more)", finding.more) : std::string())
                << "\n";
        }
    }

 private:
    struct Said {
        std::string key, line;
        int more = 0;
    };
    std::vector<Said> said_;
};

}  // namespace

void print_sonde_figures(std::ostream& out, const std::vector<const IorTest*>& tests) {
    UniqueFindings findings;
    bool headed = false;
    for (const IorTest* test : tests) {
        for (const Point& point : test->points) {
            if (point.step.kind != IorStep::StepKind::write && point.step.kind != IorStep::StepKind::read) {
                continue;
            }
            if (!headed) {
                headed = true;
                out << "sonde: next to IOR's figures: bw is bytes / (last close - first open); transfers alone are "
                       "bytes / (last - first transfer)\n"
                       "sonde: Latency(s) above is the mean of the best task; below are single calls of all tasks\n";
            }
            const char* kind = point.writes() ? "Write" : "Read";
            const std::string who =
                text("sonde: %s of test %d, iteration %d: ", kind, test->number, point.step.repetition);
            out << who << figures_of(*test, point) << "\n";
            for (const std::string& finding : point.findings) {
                findings.add(kind, who + finding, finding);
            }
        }
    }
    findings.tell(out);
}

}  // namespace sonde::dialects::ior
