// SPDX-License-Identifier: Apache-2.0
// From a phase to what each stream of a process does in it: files, geometry, how far it may read.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "workloads/data.hpp"

#include <cstddef>
#include <vector>

namespace sonde::phases {

/// Task of a stream that only waits at the barriers, beyond tasks.used of the plan.
constexpr int nobody = -1;

/// What one stream stands for: a task, or `nobody`, and its lane (0, or 0 and 1 of duplex phases).
struct StreamPlace {
    int task = 0, lane = 0;
};
/// The streams of one process in one phase, in their order; one for each thread and lane, also for tasks that do not
/// work.
std::vector<StreamPlace> streams_of(const plan::Phase& phase, const files::TaskMap& tasks, int process);

/// The job of one stream: files, geometry, how far it may read. Throws plan::PlanError with one sentence when the phase
/// asks for more than was written.
workloads::StreamJob job_of(const Context& context, std::size_t index, StreamPlace place, const files::FileMap& map);

}  // namespace sonde::phases
