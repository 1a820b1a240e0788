// SPDX-License-Identifier: Apache-2.0
// Phases on trees: the part of each stream, and what happens before and after the timed part.
#pragma once

#include "files/trees.hpp"
#include "phases/jobs.hpp"
#include "results/totals.hpp"

#include <string>

namespace sonde::phases {

/// Fills in `job.tree` and `job.files` of a phase on a tree. Throws plan::PlanError with one sentence when the items
/// that it needs are not known.
void add_tree(const Context& context, std::size_t index, StreamPlace place, workloads::StreamJob& job);

/// Untimed work of the root before a phase: the directories in which the trees lie, and, where no phase makes them, the
/// trees. One sentence, empty when all is well.
std::string prepare_tree(const Context& context, std::size_t index);

/// Untimed work of the root after a phase that removed trees.
void finish_tree(const Context& context, std::size_t index);

/// What later phases must know about the items.
void remember_tree(const plan::Phase& phase, std::size_t index, const files::TaskMap& tasks,
                   const results::Totals& totals, files::Forest& forest);

}  // namespace sonde::phases
