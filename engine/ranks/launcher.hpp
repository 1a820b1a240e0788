// SPDX-License-Identifier: Apache-2.0
// What the environment says about how this process was started.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace sonde::ranks {

struct Launched {
    std::string by = "none";  ///< "hydra", "openmpi", "slurm", "flux", "jsrun", "pmix" or "none"
    int process = 0, processes = 1;
    int local = 0, locals = 1;  ///< -1: the launcher does not say
    bool pmix = false;          ///< a PMIx server is there to be talked to
    /// Same for all processes of this job on this node and for nothing else; empty when there is no such thing.
    std::string job;
    /// The launcher says that all processes are on this node, and there is a job name to meet by.
    bool one_node() const { return processes == 1 || (locals == processes && local >= 0 && !job.empty()); }
};

/// Value of an environment variable.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

/// Pure apart from hydra's job name, which is the proxy that is an ancestor of this process (found in /proc).
Launched launched(const Lookup& variable);
Launched launched();

/// This machine's name as the user knows it.
std::string host_name();

}  // namespace sonde::ranks
