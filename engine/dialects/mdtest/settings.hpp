// SPDX-License-Identifier: Apache-2.0
// The settings of an mdtest command line, before the number of processes is known.
#pragma once

#include "dialects/option_parser.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sonde::dialects::mdtest {

struct MdtestSettings {
    std::string api = "POSIX";
    std::string directory = "./out";
    int branching = 1, depth = 0;
    std::uint64_t items = 0, items_per_dir = 0;
    bool create = false, stat = false, read = false, remove = false, rename = false;   ///< -C -T -E -r -U
    bool files = false, directories = false;                                           ///< -F -D
    bool leaf_only = false, unique = false, shared_file = false, single_task = false;  ///< -L -u -S -c
    bool make_node = false;                                                            ///< -k
    int no_barriers = 0;                                                               ///< -B
    int first = 1, last = 0, step = 1;                                                 ///< -f -l -s: numbers of tasks
    int iterations = 1, shift = 0, delay_s = 0, stonewall_s = 0;                       ///< -i -N -p -W
    std::string status_file;                                                           ///< -x
    std::uint64_t write_bytes = 0, read_bytes = 0;                                     ///< -w -e
    bool fsync = false, sync = false;                                                  ///< -y -Y
    bool verify_read = false, verify_write = false;                                    ///< -X, --verify-write
    std::optional<std::int64_t> signature;                                             ///< -G
    std::string packets = "t";                                                         ///< --dataPacketType
    bool random = false;                                                               ///< -R
    std::int64_t random_seed = 0;
    bool print_time = false, print_both = false, print_all = false, rank_statistics = false;  ///< -Z -P …
    bool time_unique_overhead = false;                                                        ///< -t
    int verbose = 0;
    bool warnings_are_errors = false;
    bool direct = false;  ///< --posix.odirect
    std::int64_t dummy_create_us = 0, dummy_close_us = 0, dummy_sync_us = 0, dummy_transfer_us = 0;
    bool dummy_only_first = false;
    std::string before_phase;       ///< --run-cmd-before-phase
    std::string after_phase;        ///< --run-cmd-after-phase
    std::string rank_details;       ///< --saveRankPerformanceDetails
    std::string operations_prefix;  ///< --savePerOpDataCSV
    std::vector<std::string> warnings;

    bool all_phases() const { return !create && !stat && !read && !remove && !rename; }
    /// Loops over directories of their own, when both -n and -I are given.
    std::uint64_t loops() const { return items > 0 && items_per_dir > 0 && !unique ? items / items_per_dir : 1; }
};

/// Options of mdtest 4.1 that are read, in the order of its help.
const std::vector<ToolOption<MdtestSettings>>& options();
/// Why an option that mdtest has is not read; empty when mdtest does not have it either.
std::string explain_refusal(const std::string& name);

/// From the words to settings that go together. Throws plan::PlanError with one sentence, or Help.
MdtestSettings parse_arguments(const std::vector<std::string>& arguments);

}  // namespace sonde::dialects::mdtest
