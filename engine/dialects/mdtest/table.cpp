// SPDX-License-Identifier: Apache-2.0
#include "dialects/mdtest/table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <numeric>

namespace sonde::dialects::mdtest {
namespace {

template <class... Values>
std::string format_text(const char* format, Values... values) {
    std::array<char, 512> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    return text.data();
}

/// As mdtest prints what -v asks for: the level, the rank and the line of its source.
std::string verbose_line(int line, const std::string& text) {
    return format_text("V-1: Rank %3d Line %5d ", 0, line) + text + "\n";
}

/// Values of one test over the iterations that have it, as `value` returns them.
std::vector<double> list_values(const MdtestResults& results, MdtestTest test,
                                const std::function<double(const TestResult&)>& value) {
    std::vector<double> values;
    for (const auto& all : results.results_by_iteration) {
        const TestResult& measured = all[static_cast<std::size_t>(test)];
        values.push_back(measured.done ? value(measured) : 0.0);
    }
    return values;
}

double quotient(double items, double seconds) {
    return items > 0 && seconds > 0 ? items / seconds : 0.0;
}

/// mdtest's rate of an iteration: the slowest task's, times the tasks. All tasks wait for the last, so that is what
/// they have in common.
double compute_rate(const TestResult& test) {
    double least = 0;
    for (std::size_t k = 0; k < test.items_by_task.size(); ++k) {
        const double rate = quotient(test.items_by_task[k], test.duration_s);
        least = k == 0 ? rate : std::min(least, rate);
    }
    return least * static_cast<double>(test.items_by_task.size());
}

std::vector<MdtestTest> list_table_rows(const MdtestSettings& s) {
    std::vector<MdtestTest> rows;
    for (int i = s.directories ? 0 : static_cast<int>(file_create);
         i < (s.files ? static_cast<int>(tree_create) : static_cast<int>(file_create)); ++i) {
        rows.push_back(static_cast<MdtestTest>(i));
    }
    return rows;
}

void print_columns(std::ostream& out, const IterationStatistics& row) {
    out << format_text("%14.3f %14.3f %14.3f ", row.max, row.min, row.mean);
}

/// Over all tasks of all iterations: rate or time of their own work, without waiting for others.
IterationStatistics compute_task_statistics(const MdtestResults& results, MdtestTest test, bool times) {
    std::vector<double> values;
    for (const auto& all : results.results_by_iteration) {
        const TestResult& m = all[static_cast<std::size_t>(test)];
        for (std::size_t k = 0; k < m.items_by_task.size(); ++k) {
            values.push_back(times ? m.get_task_seconds(k) : quotient(m.items_by_task[k], m.get_task_seconds(k)));
        }
    }
    return compute_statistics(values);
}

void print_processes(std::ostream& out, const MdtestResults& results, const MdtestSettings& s, int tasks, bool times) {
    out << "\nPer process result (" << (times ? "time" : "rate") << "):\n";
    std::vector<MdtestTest> rows = list_table_rows(s);
    rows.insert(rows.end(), {tree_create, tree_remove});
    for (std::size_t j = 0; j < results.results_by_iteration.size(); ++j) {
        out << "iteration: " << j << "\n";
        for (const MdtestTest test : rows) {
            const TestResult& m = results.results_by_iteration[j][static_cast<std::size_t>(test)];
            out << "Test " << test_name(test);
            for (std::size_t k = 0; k < static_cast<std::size_t>(tasks); ++k) {
                const bool has_value = k < m.items_by_task.size() && test < tree_create;
                out << (k == 0 ? ' ' : ',')
                    << format_text("%e", !has_value ? 0.0
                                         : times    ? m.get_task_seconds(k)
                                                    : quotient(m.items_by_task[k], m.get_task_seconds(k)));
            }
            out << "\n";
        }
    }
}

}  // namespace

void print_stonewalls(std::ostream& out, const MdtestResults& results) {
    for (const auto& all : results.results_by_iteration) {
        const TestResult& create = all[file_create];
        const std::vector<double>& items = create.items_at_deadline;
        if (!items.empty()) {
            const double sum = std::accumulate(items.begin(), items.end(), 0.0);
            out << format_text("Continue stonewall hit min: %.0f max: %.0f avg: %.1f \n",
                               *std::min_element(items.begin(), items.end()),
                               *std::max_element(create.items_by_task.begin(), create.items_by_task.end()),
                               sum / static_cast<double>(items.size()));
        }
    }
}

void print_settings(std::ostream& out, const MdtestSettings& s) {
    const auto yes = [](bool value) { return std::string(value ? "True" : "False"); };
    const auto number = [](auto value) { return std::to_string(value); };
    const std::pair<int, std::string> lines[] = {
        {2442, "api                     : " + s.api},
        {2443, "barriers                : " + yes(s.no_barriers == 0)},
        {2444, "collective_creates      : " + yes(s.single_task)},
        {2445, "create_only             : " + yes(s.create)},
        {2446, "dirpath(s):"},
        {2448, "\t" + s.directory},
        {2450, "dirs_only               : " + yes(s.directories)},
        {2451, "read_bytes              : " + number(s.read_bytes)},
        {2452, "read_only               : " + yes(s.read)},
        {2453, "first                   : " + number(s.first)},
        {2454, "files_only              : " + yes(s.files)},
        {2458, "iterations              : " + number(s.iterations)},
        {2459, "items_per_dir           : " + number(s.items_per_dir)},
        {2460, "last                    : " + number(s.last)},
        {2461, "leaf_only               : " + yes(s.leaf_only)},
        {2462, "items                   : " + number(s.items)},
        {2463, "nstride                 : " + number(s.shift)},
        {2464, "pre_delay               : " + number(s.delay_s)},
        {2465, "remove_only             : " + yes(s.leaf_only)},  // mdtest shows another setting under this name
        {2466, "random_seed             : " + number(s.random_seed)},
        {2467, "stride                  : " + number(s.step)},
        {2468, "shared_file             : " + yes(s.shared_file)},
        {2469, "time_unique_dir_overhead: " + yes(s.time_unique_overhead)},
        {2470, "stone_wall_timer_seconds: " + number(s.stonewall_s)},
        {2471, "stat_only               : " + yes(s.stat)},
        {2472, "unique_dir_per_task     : " + yes(s.unique)},
        {2473, "write_bytes             : " + number(s.write_bytes)},
        {2474, "sync_file               : " + yes(s.fsync)},
        {2475, "call_sync               : " + yes(s.sync)},
        {2476, "depth                   : " + number(s.depth)},
        {2477, "make_node               : " + number(s.make_node ? 1 : 0)}};
    for (const auto& [line, text] : lines) {
        out << verbose_line(line, text);
    }
}

void print_tests(std::ostream& out, const MdtestResults& results, const MdtestSettings& s, const TreeCounts& shape) {
    out << verbose_line(2677, "") << verbose_line(2678, "   Operation               Duration              Rate")
        << verbose_line(2679, "   ---------               --------              ----");
    const auto directories = static_cast<double>(shape.directories);
    for (std::size_t j = 0; j < results.results_by_iteration.size(); ++j) {
        const auto& all = results.results_by_iteration[j];
        const auto line = [&](int number, const char* name, MdtestTest test) {
            const TestResult& m = all[static_cast<std::size_t>(test)];
            const bool tree = test == tree_create || test == tree_remove;
            const double rate = tree ? quotient(directories, m.duration_s) : compute_rate(m);
            out << verbose_line(number,
                                format_text("%s: %14.3f sec, %14.3f ops/sec", name, m.duration_s, m.done ? rate : 0.0));
        };
        out << verbose_line(2063, "main: * iteration " + std::to_string(j + 1) + " *");
        if (s.create) {
            line(2139, "V-1: main:   Tree creation     ", tree_create);
        }
        if (s.directories) {
            line(1125, "   Directory creation", dir_create);
            line(1126, "   Directory stat    ", dir_stat);
            line(1127, "   Directory rename ", dir_rename);
            line(1128, "   Directory removal ", dir_remove);
        }
        if (s.files) {
            line(1435, "  File creation     ", file_create);
            line(1439, "  File stat         ", file_stat);
            line(1440, "  File read         ", file_read);
            line(1441, "  File removal      ", file_remove);
        }
        if (s.remove) {
            line(2249, "main   Tree removal      ", tree_remove);
        }
    }
}

void print_summary(std::ostream& out, const MdtestResults& results, const MdtestSettings& s, const TreeCounts& shape,
                   int tasks, bool times) {
    if (s.print_all) {
        print_processes(out, results, s, tasks, times);
    }
    out << "\nSUMMARY " << (times ? "time (in ms/op)" : "rate (in ops/sec)") << ": (of "
        << results.results_by_iteration.size() << " iterations)\n";
    out << "   Operation     "
        << (s.rank_statistics ? "per Rank: Max            Min           Mean      per Iteration:" : "               ")
        << " Max            Min           Mean        Std Dev\n   ---------      "
        << (s.rank_statistics ? "         ---            ---           ----       " : "")
        << "               ---            ---           ----        -------\n";
    for (const MdtestTest test : list_table_rows(s)) {
        const IterationStatistics row = compute_statistics(list_values(
            results, test, [times](const TestResult& m) { return times ? m.duration_s : compute_rate(m); }));
        out << format_text("   %-18s ", test_name(test));
        if (s.rank_statistics) {
            print_columns(out, compute_task_statistics(results, test, times));
            out << "    ";
        }
        out << "    ";
        print_columns(out, row);
        out << format_text("%14.3f\n", row.deviation);
    }
    for (const MdtestTest test : {tree_create, tree_remove}) {
        // mdtest counts one tree, whatever the number of tasks that make one.
        const auto directories = static_cast<double>(shape.directories);
        const IterationStatistics row =
            compute_statistics(list_values(results, test, [times, directories](const TestResult& m) {
                return times ? m.duration_s : quotient(directories, m.duration_s);
            }));
        out << format_text("   %-22s ", test_name(test));
        if (s.rank_statistics) {
            print_columns(out, row);
            out << "    ";
        }
        print_columns(out, row);
        out << format_text("%14.3f\n", row.deviation);
    }
}

void print_sonde_rates(std::ostream& out, const MdtestResults& results, const MdtestSettings& s) {
    out << "sonde: all operations that were done / time from the first task's start to the last task's end\n"
           "sonde:                        done          ops/s      median    99 % below\n";
    std::vector<MdtestTest> rows = list_table_rows(s);
    rows.insert(rows.end(), {tree_create, tree_remove});
    for (const MdtestTest test : rows) {
        const auto mean = [&](const std::function<double(const TestResult&)>& value) {
            return compute_statistics(list_values(results, test, value)).mean;
        };
        if (mean([](const TestResult& m) { return m.operations; }) <= 0) {
            continue;
        }
        out << format_text("sonde: %-14s %12.0f %14.1f %8.2f us %10.2f us\n", test_id(test),
                           mean([](const TestResult& m) { return m.operations; }),
                           mean([](const TestResult& m) { return m.ops_per_s; }),
                           mean([](const TestResult& m) { return m.median_ns; }) / 1e3,
                           mean([](const TestResult& m) { return m.p99_ns; }) / 1e3);
    }
    if (results.stonewall_s > 0) {
        out << format_text("sonde: file-create: %.0f files when the stonewall came after %.3f s\n",
                           results.stonewall_items, results.stonewall_s);
    }
    if (s.print_time || s.print_both) {
        out << "sonde: mdtest heads its table of times \"ms/op\"; the numbers in it are seconds of a phase\n";
    }
    for (const std::string& finding : results.findings) {
        out << "sonde: " << finding << "\n";
    }
}

bool create_rank_details_file(const std::string& path) {
    std::ofstream file(path, std::ios::trunc);
    file << "rank,items";
    for (int i = 0; i < tests; ++i) {
        file << ",rate-" << test_name(static_cast<MdtestTest>(i)) << ",time-" << test_name(static_cast<MdtestTest>(i));
        if (i == dir_stat) {
            file << ",rate-Directory read,time-Directory read";
        }
    }
    file << "\n";
    return static_cast<bool>(file.flush());
}

bool append_rank_details(const std::string& path, const MdtestResults& results, const TreeCounts& shape, int tasks) {
    std::ofstream file(path, std::ios::app);
    const auto cell = [](double items, double seconds) {
        return items > 0 && seconds > 0 ? format_text(",%.10e,%.10e", items / seconds, seconds) : std::string(",,");
    };
    const auto directories = static_cast<double>(shape.directories);
    file << "all," << shape.items;
    for (int i = 0; i < tests; ++i) {
        const TestResult& m = results.results_by_iteration.front()[static_cast<std::size_t>(i)];
        const bool tree = i == tree_create || i == tree_remove;
        const double items = tree ? directories : std::accumulate(m.items_by_task.begin(), m.items_by_task.end(), 0.0);
        file << (m.done ? cell(items, m.duration_s) : ",,") << (i == dir_stat ? ",," : "");
    }
    file << "\n";
    for (const auto& all : results.results_by_iteration) {
        for (int k = 0; k < tasks; ++k) {
            file << k << ",";
            for (int i = 0; i < tree_create; ++i) {
                const TestResult& m = all[static_cast<std::size_t>(i)];
                const auto task = static_cast<std::size_t>(k);
                file << (m.done && task < m.items_by_task.size() ? cell(m.items_by_task[task], m.get_task_seconds(task))
                                                                 : ",,")
                     << (i == dir_stat ? ",," : "");
            }
            file << "\n";
        }
    }
    return static_cast<bool>(file.flush());
}

}  // namespace sonde::dialects::mdtest
