// SPDX-License-Identifier: Apache-2.0
// The options of md-workbench, and the rules between them.
#include "dialects/md_workbench/settings.hpp"
#include "dialects/number.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sonde::dialects::md_workbench {
namespace {

using plan::PlanError;
using S = WorkbenchSettings;
using V = const std::string&;

constexpr int max_items = 1 << 28;

int read_small_number(V text, int least, int most) {
    return static_cast<int>(read_scaled_number(text, "", least, most));
}

std::uint64_t read_count(V text, std::int64_t least) {
    return static_cast<std::uint64_t>(read_scaled_number(text, "", least, max_items));
}

double read_factor(V text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0) || value > 1e6) {
        throw PlanError("is \"" + text + "\", but must be a number from 0 to 1000000 (1 is 100 %)");
    }
    return value;
}

std::string packet_type(V text) {
    const char letter = text.empty() ? '\0' : text[0];
    if (std::strchr("toir", letter) == nullptr || letter == '\0') {
        throw PlanError("is \"" + text + "\", but must be one of timestamp, offset, incompressible, random");
    }
    return {letter};
}

const std::vector<ToolOption<S>>& options() {
    static const std::vector<ToolOption<S>> all = with_idle_options<S>({
        {'q', "quiet", false, "print the lines of phases only", [](S& s, V) { s.quiet = true; }},
        {'T', "adaptive-waiting", false, "each iteration again with waiting times from 0.0625 to 4",
         [](S& s, V) { s.adaptive = true; }},
        {'1', "run-precreate", false, "run the precreate phase", [](S& s, V) { s.create = true; }},
        {'2', "run-benchmark", false, "run the benchmark phase", [](S& s, V) { s.bench = true; }},
        {'3', "run-cleanup", false, "run the cleanup phase", [](S& s, V) { s.clean = true; }},
        {'W', "stonewall-wear-out", false, "after the stonewall all tasks reach the count of the fastest",
         [](S& s, V) { s.wear_out = true; }},
        {'X', "verify-read", false, "verify what is read", [](S& s, V) { s.verify = true; }},
        {'v', "verbose", false, "say more: nothing here, the record has all", [](S& s, V) { ++s.verbose; }},
        {0, "latency-all", false, "with -L", [](S&, V) {}},
        {0, "print-detailed-stats", false, "print a table instead of lines", [](S& s, V) { s.detailed = true; }},
        {0, "read-only", false, "benchmark: stat and read only", [](S& s, V) { s.read_only = true; }},
        {0, "ignore-precreate-errors", false, "objects that are there already are no error here either", [](S&, V) {}},
        {0, "process-reports", false, "a line for each task too", [](S& s, V) { s.process_reports = true; }},
        {0, "posix.odirect", false, "POSIX: O_DIRECT for what is written and read", [](S& s, V) { s.direct = true; }},
        {'O', "offset", true, "ranks between who makes an object and who takes it (1)",
         [](S& s, V v) { s.spread = read_small_number(v, -(1 << 24), 1 << 24); }},
        {'a', "api", true, "interface: POSIX (default) or DUMMY", [](S& s, V v) { s.api = v; }},
        {'I', "obj-per-proc", true, "objects of a task in each set and iteration (1000)",
         [](S& s, V v) { s.objects = read_count(v, 0); }},
        {'L', "latency", true, "accepted; the record has the latencies",
         [](S& s, V) { s.notes.emplace_back("-L writes no files: the record has a histogram of each kind of call"); }},
        {'P', "precreate-per-set", true, "objects of a task in each set beforehand (3000)",
         [](S& s, V v) { s.precreate = read_count(v, 1); }},
        {'D', "data-sets", true, "sets of a task (10)", [](S& s, V v) { s.sets = read_small_number(v, 1, 1'000'000); }},
        {'G', "", true, "signature of the content",
         [](S& s, V v) {
             const std::int64_t seed = read_scaled_number(v, "", INT32_MIN, UINT32_MAX);
             s.seed = seed == -1 ? std::nullopt : std::optional(seed);
         }},
        {'o', "", true, "directory (./out)", [](S& s, V v) { s.directory = v; }},
        {'S', "object-size", true, "bytes of an object (3901)",
         [](S& s, V v) { s.size = static_cast<std::uint64_t>(read_scaled_number(v, "", 1, 1 << 30)); }},
        {'R', "iterations", true, "iterations of the benchmark phase (3)",
         [](S& s, V v) { s.iterations = read_small_number(v, 0, 100'000); }},
        {'t', "waiting-time", true, "wait after each call, in proportion to how long it took",
         [](S& s, V v) { s.wait = read_factor(v); }},
        {'w', "stonewall-timer", true, "seconds after which an iteration of the benchmark stops",
         [](S& s, V v) { s.stonewall_s = read_small_number(v, 0, max_items); }},
        {0, "dataPacketType", true, "content: timestamp, offset, incompressible, random",
         [](S& s, V v) { s.packets = packet_type(v); }},
        {0, "start-item", true, "number of the first object", [](S& s, V v) { s.start_item = read_count(v, 0); }},
        {0, "run-info-file", true, "where a run of some phases begins (md-workbench.status)",
         [](S& s, V v) { s.info_file = v; }},
        {0, "posix.rangelocks", false, "not used: no locks are taken around what is read and written",
         [](S& s, V) {
             s.notes.emplace_back("--posix.rangelocks is not used: no locks are taken around what is read and written");
         }},
    });
    return all;
}

std::string explain_refusal(const std::string& name) {
    for (const char* gpu : {"allocateBufferOnGPU", "GPUid", "gpuDirect"}) {
        if (name == gpu) {
            return "is refused: buffers in GPU memory are not built into this engine";
        }
    }
    for (const char* module : {"posix.", "dummy."}) {
        if (name.starts_with(module)) {
            return "is refused: of the options of POSIX and DUMMY only --posix.odirect is read here";
        }
    }
    return {};
}

}  // namespace

WorkbenchSettings parse_arguments(const std::vector<std::string>& arguments) {
    const OptionLanguage<WorkbenchSettings> language{"md-workbench", options(), explain_refusal};
    WorkbenchSettings s = ArgumentParser<WorkbenchSettings>(language, arguments).read();
    if (s.api != "POSIX" && s.api != "DUMMY") {
        throw PlanError("-a is \"" + s.api +
                        "\", but must be POSIX or DUMMY: there are no operations on names through "
                        "others");
    }
    if (s.directory.empty() || s.info_file.empty()) {
        throw PlanError("-o and --run-info-file need a name");
    }
    if (!s.create && !s.bench && !s.clean) {
        s.create = s.bench = s.clean = true;
    }
    if (s.stonewall_s > 0 && !s.wear_out) {
        s.notes.emplace_back(
            "-w without -W would leave tasks at different objects, which nobody could clean up: all "
            "tasks reach the count of the fastest, as with -W");
        s.wear_out = true;
    }
    return s;
}

}  // namespace sonde::dialects::md_workbench
