// SPDX-License-Identifier: Apache-2.0
// Facts about a phase that its findings depend on.
#pragma once

#include "plan/plan.hpp"

#include <cstdint>
#include <string>

namespace sonde::results {

/// Facts about a phase beyond its totals.
struct PhaseCircumstances {
    const plan::Phase* phase = nullptr;
    std::string backend;
    bool stores_data = true;
    bool memory_backed = false;
    int tasks = 1;
    int tasks_per_node = 1;
    int cpus = 1;  ///< of the root's node
    std::uint64_t node_memory = 0;
    int nodes = 1;
    double residency = -1;  ///< before a read; < 0 = unknown
    bool residency_known = false;
    std::int64_t clock_drift_ns = 0;               ///< difference of counter and CLOCK_MONOTONIC over the phase
    std::uint64_t disk_bytes = 0, file_bytes = 0;  ///< sample of written files; 0 = not examined
    double other_cores = -1;  ///< cores of the root's node that other processes used, as a mean; < 0 = unknown
    std::uint64_t maximum_request = 0;  ///< bytes, of the device below the target; 0 = unknown
    bool verification_requested = false;
    bool hides_write_errors = false;      ///< a write that failed may count as done, and no phase reads it back
    std::string file_system;              ///< type, as in /proc/mounts
    std::string earlier_removal;          ///< trees: phase of this run that removed items before this one; empty = none
    bool dropped_metadata_cache = false;  ///< trees: the name cache of every node was emptied before the phase
    bool reads_names_of_other_nodes = false;  ///< trees: every task reads names created on another node
};

}  // namespace sonde::results
