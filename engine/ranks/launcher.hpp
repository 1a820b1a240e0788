// SPDX-License-Identifier: Apache-2.0
// Start of the processes of a run: the caller's request, and the facts that a launcher puts into the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace sonde::ranks {

enum class LaunchMode { automatic, single, forked, node, mpi };

struct TeamRequest {
    LaunchMode launch = LaunchMode::automatic;
    int processes = 1;         ///< forked: how many
    std::string mpi_module;    ///< path of the module to load; empty = search next to the engine
    bool need_mpi = false;     ///< a backend needs MPI: use it even on one node
    bool prefer_site = false;  ///< without a launcher: the site's MPI, with which libraries of file formats are built
};

struct LaunchEnvironment {
    std::string launcher = "none";  ///< "ssh", "hydra", "openmpi", "slurm", "flux", "jsrun", "pmix" or "none"
    int process = 0, processes = 1;
    int local_index = 0, local_count = 1;  ///< -1 = not given by the launcher
    bool pmix = false;                     ///< a PMIx server is available
    /// This node in the host list of the job; empty when the launcher does not say.
    std::string node_name;
    /// Unique name of this job on this node; empty when the launcher gives none.
    std::string job;
    /// Whether all processes are on this node and have a job name for the rendezvous.
    bool is_one_node() const {
        return processes == 1 || (local_count == processes && local_index >= 0 && !job.empty());
    }
};

/// Value of an environment variable.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;

/// Pure, except that the job name of hydra is that of its proxy, an ancestor of this process in /proc.
LaunchEnvironment detect_launch(const EnvironmentLookup& variable);
LaunchEnvironment detect_launch();

/// Name of the launcher that started this process (LaunchEnvironment::launcher) from its environment.
std::string launcher_name();

/// Host name of this node.
std::string host_name();

}  // namespace sonde::ranks
