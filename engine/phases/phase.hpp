// SPDX-License-Identifier: Apache-2.0
// One phase: treatments, preparation, the timed part, and what is said about it.
#pragma once

#include "phases/run.hpp"
#include "phases/summary.hpp"
#include "workloads/data.hpp"

#include <map>

namespace sonde::phases {

/// Half-duplex rates measured so far in this run (bytes/s), for the efficiency of duplex phases.
struct HalfRates {
    double write = 0, read = 0;
};

/// Runs phase `index` on all processes. False when the run must end (the outcome says why).
bool run_phase(Context& context, std::size_t index, HalfRates& half);

/// Segments of a phase on this run: from the plan, or from a volume and the memory of the nodes. Throws plan::PlanError
/// when they do not fit in a file.
std::uint64_t segments_of(const plan::Phase& phase, const TaskMap& tasks, std::uint64_t node_memory);

/// Task of a stream that only waits at the barriers, beyond tasks.used of the plan.
constexpr int nobody = -1;

/// Tasks of one process for one phase, in stream order: (task, lane).
struct StreamPlace {
    int task = 0, lane = 0;
};
std::vector<StreamPlace> streams_of(const plan::Phase& phase, const TaskMap& tasks, int process);

/// The job of one stream: files, geometry, how far it may read. Throws plan::PlanError with one sentence when the phase
/// asks for more than was written.
workloads::StreamJob job_of(const Context& context, std::size_t index, StreamPlace place, const Layout& layout);

}  // namespace sonde::phases
