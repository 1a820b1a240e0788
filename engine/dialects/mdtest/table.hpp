// SPDX-License-Identifier: Apache-2.0
// mdtest's tables of results, and the lines that Sonde adds.
#pragma once

#include "dialects/mdtest/results.hpp"

#include <ostream>
#include <string>

namespace sonde::dialects::mdtest {

/// With -v: the settings of the run. Lines begin with `Rank   0 Line …` as in mdtest 4.1, because scripts parse that.
void print_settings(std::ostream& out, const MdtestSettings& settings);
/// From -v on: seconds and rate of each test of each iteration.
void print_tests(std::ostream& out, const MdtestResults& results, const MdtestSettings& settings,
                 const TreeCounts& shape);

/// A line for each iteration whose file creation the stonewall ended: how far the tasks had come then (a file under way
/// is not counted; mdtest does), and to how many all went on.
void print_stonewalls(std::ostream& out, const MdtestResults& results);
/// The summary table, and with the options for it the results of each task. `directories`: of one tree.
void print_summary(std::ostream& out, const MdtestResults& results, const MdtestSettings& settings,
                   const TreeCounts& shape, int tasks, bool times);
/// The same by our definition: everything that was done, from the first start to the last end, with latencies. All
/// lines begin with "sonde: ", and tests have the names that the record gives them, never those of mdtest's rows:
/// output and errors often end up in one file, from which readers take the last line with the name of a row.
void print_sonde_rates(std::ostream& out, const MdtestResults& results, const MdtestSettings& settings);
/// Appends the lines for these iterations to the CSV file of --saveRankPerformanceDetails. False: it cannot be written.
bool append_rank_details(const std::string& path, const MdtestResults& results, const TreeCounts& shape, int tasks);
/// Its first line.
bool create_rank_details_file(const std::string& path);

}  // namespace sonde::dialects::mdtest
