// SPDX-License-Identifier: Apache-2.0
// How far a plan reaches on this run: bytes on the target, offsets in files, memory on a node. Computed in 128 bits, so
// that no plan, however absurd, gets past by an overflow.
#pragma once

#include "files/task_map.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::runs {

/// Bytes and files that the plan will have on the target at most.
struct Footprint {
    std::uint64_t bytes = 0, files = 0;
};

/// Throws plan::PlanError when the plan names more tasks than there are.
void check_tasks(const plan::Plan& plan, const files::TaskMap& tasks);

/// Throws plan::PlanError when a phase reaches beyond what a file or a file system can hold, or when its buffers and
/// meters do not fit into the memory of a node.
void check_extent(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory);

/// Bytes that lie already in the files which a plan names by their paths and writes: they are replaced, so the space
/// check must not ask for them again. At most what the plan writes there; files with further names free nothing.
std::uint64_t bytes_replaced(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory);

/// For plans that passed check_extent().
Footprint footprint(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory);

}  // namespace sonde::runs
