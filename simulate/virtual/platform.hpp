// SPDX-License-Identifier: Apache-2.0
// State that all phases of a simulation share besides the engine's context: the machine, its tasks and its backends.
#pragma once

#include "model/machine.hpp"
#include "virtual/simulated_backend.hpp"
#include "virtual/simulated_directories.hpp"
#include "virtual/simulated_team.hpp"
#include "virtual/storageless_backends.hpp"
#include "virtual/task_scheduler.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sonde::simulate {

struct Platform {
    Platform(SystemModel site, const MachineOptions& options) : machine(std::move(site), options, scheduler) {
        scheduler.set_machine(machine);
    }
    Platform(const Platform&) = delete;
    Platform& operator=(const Platform&) = delete;

    const backends::Backend& backend(const std::string& name) const {
        return name == null_backend_name    ? null_backend
               : name == paced_backend_name ? paced_backend
                                            : simulated_backend;
    }

    TaskScheduler scheduler;
    Machine machine;
    SimulatedTeam team{scheduler};
    SimulatedDirectories directories;
    SimulatedStorage storage{scheduler, directories};
    const backends::Backend simulated_backend = make_simulated_backend(storage);
    const backends::Backend null_backend = make_storageless_backend(null_backend_name, storage);
    const backends::Backend paced_backend = make_storageless_backend(paced_backend_name, storage);
    std::vector<workloads::WalkBoard*> walk_boards;  ///< by node; empty until the first walk
    std::vector<std::byte> buffer;                   ///< shared by all tasks, which run in turn
};

}  // namespace sonde::simulate
