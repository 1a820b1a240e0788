// SPDX-License-Identifier: Apache-2.0
// Phases on trees: the job of each stream, and the work before and after the timed part.
#pragma once

#include "files/trees.hpp"
#include "phases/context.hpp"
#include "results/totals.hpp"
#include "workloads/stream.hpp"

#include <string>

namespace sonde::phases {

/// Sets `job.tree` and `job.files` of a phase on a tree, for one task. Throws plan::PlanError when the items that the
/// phase needs are unknown.
void set_tree_job(const RunContext& context, std::size_t index, int task, workloads::StreamJob& job);

/// Untimed work of the root before a phase: creates the top directories of the trees and, when no phase creates them,
/// the trees. Returns one sentence on failure, else an empty string.
std::string prepare_tree(const RunContext& context, std::size_t index);

/// Untimed work of the root after a phase that removed trees: removes their top directories.
void remove_tree_directories(const RunContext& context, std::size_t index);

/// Updates the forest with the items that the phase created or removed.
void update_forest(const plan::Phase& phase, std::size_t index, const files::TaskMap& tasks,
                   const results::Totals& totals, files::Forest& forest);

}  // namespace sonde::phases
