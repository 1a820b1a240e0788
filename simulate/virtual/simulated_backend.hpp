// SPDX-License-Identifier: Apache-2.0
// The engine's backend interface on a simulated machine.
#pragma once

#include "backends/backend.hpp"
#include "virtual/simulated_directories.hpp"
#include "virtual/task_scheduler.hpp"

namespace sonde::simulate {

/// State that the channels of one simulation share. It outlives the channels.
struct SimulatedStorage {
    TaskScheduler& scheduler;
    SimulatedDirectories& directories;
    Time phase_start = 0;  ///< ns since the machine was built; clocks of channels count from here
};

/// The backend for phases that reach storage. Its channels act for the task that runs.
backends::Backend make_simulated_backend(SimulatedStorage& storage);

}  // namespace sonde::simulate
