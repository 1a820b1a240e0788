// SPDX-License-Identifier: Apache-2.0
// The amount of its files that a phase uses in this run.
#pragma once

#include "files/task_map.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::files {

/// Segments of a phase on this run: from the plan, or from a volume and the memory of the nodes. Throws plan::PlanError
/// when they do not fit in a file.
std::uint64_t segments_of(const plan::Phase& phase, const TaskMap& tasks, std::uint64_t node_memory);

}  // namespace sonde::files
