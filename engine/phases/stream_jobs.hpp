// SPDX-License-Identifier: Apache-2.0
// Creates the job of each stream of a process: files, geometry, readable range.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "workloads/stream.hpp"

#include <cstddef>
#include <vector>

namespace sonde::phases {

/// Task number of a stream without a task (beyond tasks.active of the plan): it only takes part in barriers.
constexpr int no_task = -1;

/// The task of one stream (or no_task) and the position of the stream in it (0, or 0 and 1 in duplex phases).
struct StreamAssignment {
    int task = 0, stream = 0;
};
/// The streams of one process in one phase, in order: one per thread (two in duplex phases), also without a task.
std::vector<StreamAssignment> assign_streams(const plan::Phase& phase, const files::TaskMap& tasks, int process);

/// The job of one stream: files, geometry, readable range. Throws plan::PlanError with one sentence when the phase asks
/// for more than was written.
workloads::StreamJob make_stream_job(const RunContext& context, std::size_t index, StreamAssignment assignment,
                                     const files::FileMap& map);

}  // namespace sonde::phases
