// SPDX-License-Identifier: Apache-2.0
// Size of a plan on this run: bytes on the target, offsets in files, memory on a node. Computed in 128 bits, so that no
// plan passes the checks by an overflow.
#pragma once

#include "files/task_map.hpp"
#include "plan/plan.hpp"

#include <cstdint>

namespace sonde::runs {

/// The volume to count for a phase that a stonewall may end early.
enum class StonewallCount { nothing, whole_volume };

/// Largest number of bytes and files of the plan on the target at one time.
struct Footprint {
    std::uint64_t bytes = 0, file_count = 0;
};

/// Throws plan::PlanError when the plan uses more tasks than exist.
void check_tasks(const plan::Plan& plan, const files::TaskMap& tasks);

/// Throws plan::PlanError when a phase exceeds the size limits of files or file systems, or when its buffers and meters
/// exceed the memory of a node.
void check_extent(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory);

/// Bytes in existing files that the plan names by path and overwrites, which need no additional space. At most the
/// bytes that the plan writes there; files with several hard links count nothing.
std::uint64_t count_replaced_bytes(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory,
                                   StonewallCount counts);

/// For plans that passed check_extent().
Footprint compute_footprint(const plan::Plan& plan, const files::TaskMap& tasks, std::uint64_t node_memory,
                            StonewallCount counts);

}  // namespace sonde::runs
