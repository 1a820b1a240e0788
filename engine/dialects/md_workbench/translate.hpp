// SPDX-License-Identifier: Apache-2.0
// From a phase of md-workbench to a plan. Data sets are copies of a tree with a directory for each task; the objects of
// a phase are a window of numbers, which moves on with each iteration.
#pragma once

#include "dialects/md_workbench/settings.hpp"

#include <nlohmann/json.hpp>

namespace sonde::dialects::md_workbench {

enum class PhaseKind { precreate, benchmark, cleanup };
const char* get_phase_name(PhaseKind phase);

/// One phase as it comes up.
struct WorkbenchStep {
    PhaseKind phase = PhaseKind::precreate;
    int iteration = 0;        ///< of the benchmark
    double wait = 0;          ///< in force
    std::uint64_t first = 0;  ///< number of the oldest object of each set
};

/// The plan of a step. `seed`: of the content; `exists`: the directory is there already.
nlohmann::ordered_json build_plan(const WorkbenchSettings& settings, const WorkbenchStep& step, std::int64_t seed,
                                  bool exists);

/// Ids of the phases of such a plan.
constexpr const char* id_sets = "sets";        ///< directories made
constexpr const char* id_objects = "objects";  ///< objects made
constexpr const char* id_cycle = "cycle";
constexpr const char* id_remove = "remove";  ///< objects removed
constexpr const char* id_remove_sets = "remove-sets";

}  // namespace sonde::dialects::md_workbench
