// SPDX-License-Identifier: Apache-2.0
// The table of options.
#include "dialects/mdtest/settings.hpp"
#include "dialects/number.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

namespace sonde::dialects::mdtest {
namespace {

using plan::PlanError;

/// As a plain number or a size: mdtest reads both alike.
std::int64_t read_number(const std::string& text, std::int64_t least, std::int64_t most) {
    return read_scaled_number(text, "", least, most);
}

int read_small_number(const std::string& text, int least, int most) {
    return static_cast<int>(read_number(text, least, most));
}

std::uint64_t read_size(const std::string& text) {
    constexpr std::int64_t most = 1LL << 40U;
    return static_cast<std::uint64_t>(read_number(text, 0, most));
}

std::string packet_type(const std::string& text) {
    static const std::map<std::string, std::string> letters{
        {"t", "t"}, {"timestamp", "t"},      {"o", "o"}, {"offset", "o"},
        {"i", "i"}, {"incompressible", "i"}, {"r", "r"}, {"random", "r"}};
    const auto match = letters.find(text);
    if (match == letters.end()) {
        throw PlanError("is \"" + text +
                        "\", but must be one of timestamp, offset, incompressible, random, t, o, i, r");
    }
    return match->second;
}

using S = MdtestSettings;
using V = const std::string&;
constexpr int max_items = 1 << 28;

std::vector<ToolOption<MdtestSettings>> list_flags() {
    return {
        {'C', "", false, "only create files and directories", [](S& s, V) { s.create = true; }},
        {'T', "", false, "only stat files and directories", [](S& s, V) { s.stat = true; }},
        {'E', "", false, "only read files", [](S& s, V) { s.read = true; }},
        {'r', "", false, "only remove files and directories that earlier runs left", [](S& s, V) { s.remove = true; }},
        {'U', "", false, "rename directories", [](S& s, V) { s.rename = true; }},
        {'D', "", false, "directories only", [](S& s, V) { s.directories = true; }},
        {'F', "", false, "files only", [](S& s, V) { s.files = true; }},
        {'k', "", false, "make files with mknod", [](S& s, V) { s.make_node = true; }},
        {'L', "", false, "items in the leaves of the tree only", [](S& s, V) { s.leaf_only = true; }},
        {'P', "", false, "print rate and time", [](S& s, V) { s.print_both = true; }},
        {0, "print-all-procs", false, "print the results of each task", [](S& s, V) { s.print_all = true; }},
        {'R', "", false, "stat and read in random order", [](S& s, V) { s.random = true; }},
        {'S', "", false, "all tasks use the same files", [](S& s, V) { s.shared_file = true; }},
        {'c', "", false, "task 0 makes and removes everything", [](S& s, V) { s.single_task = true; }},
        {'t', "", false, "time the overhead of unique directories (there is none here)",
         [](S& s, V) { s.time_unique_overhead = true; }},
        {'u', "", false, "a tree of its own for each task", [](S& s, V) { s.unique = true; }},
        {'v', "", false, "say more; may be given several times", [](S& s, V) { ++s.verbose; }},
        {'X', "verify-read", false, "verify what is read", [](S& s, V) { s.verify_read = true; }},
        {0, "verify-write", false, "verify what was written by reading it back",
         [](S& s, V) { s.verify_write = true; }},
        {'y', "", false, "fsync each file after writing", [](S& s, V) { s.fsync = true; }},
        {'Y', "", false, "sync the file system after each phase, timed", [](S& s, V) { s.sync = true; }},
        {'Z', "", false, "print time instead of rate", [](S& s, V) { s.print_time = true; }},
        {0, "posix.odirect", false, "POSIX: O_DIRECT for what is written to files and read from them",
         [](S& s, V) { s.direct = true; }},
        {0, "dummy.delay-only-rank0", false, "DUMMY: task 0 only is delayed",
         [](S& s, V) { s.dummy_only_first = true; }},
        {0, "warningAsErrors", false, "a warning ends the run", [](S& s, V) { s.warnings_are_errors = true; }},
        {0, "showRankStatistics", false, "statistics over tasks too", [](S& s, V) { s.rank_statistics = true; }},
        {0, "posix.rangelocks", false, "not used: no locks are taken around what is read and written",
         [](S& s, V) {
             s.warnings.emplace_back(
                 "--posix.rangelocks is not used: no locks are taken around what is read and written");
         }},
    };
}

std::vector<ToolOption<MdtestSettings>> list_value_options() {
    return {
        {'a', "", true, "interface: POSIX (default) or DUMMY", [](S& s, V v) { s.api = v; }},
        {'b', "", true, "branching factor of the tree (1)",
         [](S& s, V v) { s.branching = std::max(read_small_number(v, 0, max_items), 1); }},
        {'d', "", true, "directory in which the test runs (./out)", [](S& s, V v) { s.directory = v; }},
        {'B', "", true, "no barriers between phases: refused unless 0",
         [](S& s, V v) { s.no_barriers = read_small_number(v, 0, 1); }},
        {'e', "", true, "bytes to read from each file (0: open and close)",
         [](S& s, V v) { s.read_bytes = read_size(v); }},
        {'f', "", true, "first number of tasks", [](S& s, V v) { s.first = read_small_number(v, 1, max_items); }},
        {'G', "", true, "signature of the content",
         [](S& s, V v) {
             const std::int64_t value = read_number(v, INT32_MIN, UINT32_MAX);
             s.signature = value == -1 ? std::nullopt : std::optional(value);
         }},
        {'i', "", true, "iterations (1)", [](S& s, V v) { s.iterations = read_small_number(v, 0, 100'000); }},
        {'I', "", true, "items of each task in each directory", [](S& s, V v) { s.items_per_dir = read_size(v); }},
        {'l', "", true, "last number of tasks", [](S& s, V v) { s.last = read_small_number(v, 0, max_items); }},
        {'n', "", true, "items of each task", [](S& s, V v) { s.items = read_size(v); }},
        {'N', "", true, "stat the items of the N-th next task, read those of the 2 N-th, remove those of the 3 N-th",
         [](S& s, V v) { s.shift = read_small_number(v, 0, max_items / 8); }},
        {'p', "", true, "seconds to wait before the directory and the file tests",
         [](S& s, V v) { s.delay_s = read_small_number(v, 0, max_items); }},
        {0, "random-seed", true, "seed for -R",
         [](S& s, V v) { s.random_seed = read_number(v, INT32_MIN, INT32_MAX); }},
        {'s', "", true, "step of the number of tasks (1)",
         [](S& s, V v) { s.step = read_small_number(v, 1, max_items); }},
        {'V', "", true, "say more: how much", [](S& s, V v) { s.verbose = read_small_number(v, 0, max_items); }},
        {'w', "", true, "bytes to write to each file", [](S& s, V v) { s.write_bytes = read_size(v); }},
        {'W', "", true, "stonewall of file creation in seconds; then all go on to the count of the fastest",
         [](S& s, V v) { s.stonewall_s = read_small_number(v, 0, max_items); }},
        {'x', "", true, "file that holds how many items were created before the stonewall",
         [](S& s, V v) { s.status_file = v; }},
        {'z', "", true, "depth of the tree (0)", [](S& s, V v) { s.depth = read_small_number(v, 0, 100'000); }},
        {0, "dummy.delay-create", true, "DUMMY: microseconds that making a file takes",
         [](S& s, V v) { s.dummy_create_us = read_number(v, 0, INT32_MAX); }},
        {0, "dummy.delay-close", true, "DUMMY: microseconds that closing a file takes",
         [](S& s, V v) { s.dummy_close_us = read_number(v, 0, INT32_MAX); }},
        {0, "dummy.delay-sync", true, "DUMMY: microseconds that an fsync takes",
         [](S& s, V v) { s.dummy_sync_us = read_number(v, 0, INT32_MAX); }},
        {0, "dummy.delay-xfer", true, "DUMMY: microseconds that writing or reading a file takes",
         [](S& s, V v) { s.dummy_transfer_us = read_number(v, 0, INT32_MAX); }},
        {0, "dataPacketType", true, "content: timestamp, offset, incompressible, random",
         [](S& s, V v) { s.packets = packet_type(v); }},
        {0, "run-cmd-before-phase", true, "shell command before each phase, untimed, once on each node",
         [](S& s, V v) { s.before_phase = v; }},
        {0, "run-cmd-after-phase", true, "shell command after each phase, untimed, once on each node",
         [](S& s, V v) { s.after_phase = v; }},
        {0, "savePerOpDataCSV", true, "a line for each operation on files, in <this>-<test>-<task>.csv",
         [](S& s, V v) { s.operations_prefix = v; }},
        {0, "saveRankPerformanceDetails", true, "CSV file with rate and time of each task",
         [](S& s, V v) { s.rank_details = v; }},
    };
}

}  // namespace

const std::vector<ToolOption<MdtestSettings>>& options() {
    static const std::vector<ToolOption<MdtestSettings>> all = [] {
        std::vector<ToolOption<MdtestSettings>> list = list_flags();
        for (const ToolOption<MdtestSettings>& option : list_value_options()) {
            list.push_back(option);
        }
        return with_idle_options<MdtestSettings>(std::move(list));
    }();
    return all;
}

std::string explain_refusal(const std::string& name) {
    static const std::map<std::string, const char*> refused{
        {"g",
         "is refused: the default layout of Lustre directories needs liblustreapi, which this engine does not use; "
         "set it with `lfs setdirstripe -D` before the run"},
        {"allocateBufferOnGPU", "is refused: buffers in GPU memory are not built into this engine"},
        {"GPUid", "is refused: buffers in GPU memory are not built into this engine"},
        {"gpuDirect", "is refused: buffers in GPU memory are not built into this engine"},
    };
    const auto match = refused.find(name);
    if (match != refused.end()) {
        return match->second;
    }
    for (const char* module : {"posix.lustre.", "posix.gpfs.", "posix.beegfs."}) {
        if (name.starts_with(module)) {
            return "is refused: options of interfaces are not read for names; set layouts on the directory before the "
                   "run";
        }
    }
    return {};
}

}  // namespace sonde::dialects::mdtest
