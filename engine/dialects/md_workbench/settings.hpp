// SPDX-License-Identifier: Apache-2.0
// The settings of an md-workbench command line.
#pragma once

#include "dialects/option_parser.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sonde::dialects::md_workbench {

struct WorkbenchSettings {
    std::string api = "POSIX";
    std::string directory = "./out";
    std::string info_file = "md-workbench.status";
    int spread = 1;  ///< -O: ranks between who makes an object and who takes it, times the number of the set
    std::uint64_t objects = 1000;    ///< -I: of a task in each set and iteration
    std::uint64_t precreate = 3000;  ///< -P: of a task in each set: the working set
    int sets = 10;                   ///< -D: of a task
    int iterations = 3;              ///< -R
    std::uint64_t size = 3901;       ///< bytes of an object
    std::optional<std::int64_t> seed;
    std::string packets = "t";
    std::uint64_t start_item = 0;
    int stonewall_s = 0;
    bool wear_out = false;
    double wait = 0;  ///< after each call: so many times as long as it took
    bool adaptive = false;
    bool create = false, bench = false, clean = false;  ///< -1 -2 -3; none is all
    bool verify = false, read_only = false;
    bool direct = false;
    bool detailed = false, process_reports = false, quiet = false;
    int verbose = 0;
    std::vector<std::string> notes;
};

/// Throws plan::PlanError with one sentence, or Help.
WorkbenchSettings parse_arguments(const std::vector<std::string>& arguments);

}  // namespace sonde::dialects::md_workbench
