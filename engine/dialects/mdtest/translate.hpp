// SPDX-License-Identifier: Apache-2.0
// From settings to a plan, once it is known who takes part.
#pragma once

#include "dialects/dialect.hpp"
#include "dialects/mdtest/settings.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sonde::dialects::mdtest {

/// The rows of mdtest's table, in its order.
enum MdtestTest : int {
    dir_create,
    dir_stat,
    dir_rename,
    dir_remove,
    file_create,
    file_stat,
    file_read,
    file_remove,
    tree_create,
    tree_remove,
    tests
};
const char* test_name(MdtestTest test);  ///< in the table
const char* test_id(MdtestTest test);    ///< in ids of phases

/// The tree of one iteration, as mdtest counts it.
struct TreeCounts {
    std::uint64_t directories = 1;    ///< of one tree
    std::uint64_t holders = 1;        ///< of those, with items
    std::uint64_t items_per_dir = 0;  ///< of each task
    std::uint64_t loops = 1;
    std::uint64_t items = 0;  ///< of each task, all loops
};
/// No items when -n is less than the directories that are to hold them: mdtest then makes and removes the tree only.
/// `expected`: items that a run before has created. Throws plan::PlanError when there are too many directories.
TreeCounts count_tree(const MdtestSettings& settings, std::optional<std::uint64_t> expected);

/// Number of tasks by which -N shifts: complete nodes where ranks fill one node after the other, as in mdtest.
int compute_rank_shift(const MdtestSettings& settings, const SessionSetup& setup);

/// The id of a phase, and back.
std::string phase_id(int iteration, MdtestTest test, bool single_task = false);
struct PhaseName {
    int iteration = 0;
    MdtestTest test = tests;
};
std::optional<PhaseName> parse_phase_id(const std::string& id);

/// The plan for the first `tasks` tasks. `exists`: the directory is there already; `now`: seconds since 1970, for seeds
/// that mdtest takes from the clock.
nlohmann::ordered_json build_plan(const MdtestSettings& settings, const SessionSetup& setup, int tasks,
                                  const TreeCounts& shape, std::optional<std::uint64_t> expected, bool exists,
                                  std::int64_t now);

}  // namespace sonde::dialects::mdtest
