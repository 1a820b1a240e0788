// SPDX-License-Identifier: Apache-2.0
// State that all phases of a run share: plan, options, team, storage, manifest, outcome.
#pragma once

#include "files/descriptor.hpp"
#include "files/manifest.hpp"
#include "files/task_map.hpp"
#include "layouts/ceph_placement.hpp"
#include "meters/target_board.hpp"
#include "phases/board.hpp"
#include "phases/outcome.hpp"
#include "phases/run_options.hpp"
#include "plan/plan.hpp"
#include "ranks/team.hpp"
#include "records/writer.hpp"
#include "workloads/walk_board.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sonde::phases {

/// Location of the run's files, as determined by the root and broadcast.
struct RunStorage {
    std::string directory;            ///< the run directory; the target's directory when the plan names its files
    std::string file_system;          ///< type of the target's file system, as in /proc/mounts; empty = unknown
    bool makes_files = true;          ///< false = no backend of the plan uses files
    bool memory_backed = false;       ///< the target is tmpfs or the like
    plan::Bytes full_stripe = 0;      ///< from the plan, else from the mount options; 0 = unknown
    plan::Bytes maximum_request = 0;  ///< of the device below, bytes; 0 = unknown
    std::uint64_t device = 0;         ///< number (st_rdev) of the block device that is the target; 0 = none
    bool stripes_files = false;       ///< target.striping is set on each file, not on the run directory
};

/// Objects in the shared memory of the node.
struct NodeShared {
    ProgressBoard* board = nullptr;
    workloads::WalkBoard* walk = nullptr;    ///< set by the first walk
    meters::TargetBoard* targets = nullptr;  ///< set by the first phase on a file system that reports layouts
};

/// State of the root. Unchanged in other processes.
struct RootProcessState {
    records::Writer* record = nullptr;
    std::vector<std::string> hosts;  ///< by node
    Outcome outcome;
    nlohmann::json space_finding = {};  ///< written before the first phase; null = none
    /// Holds the target's block device for this run, so that nobody else mounts or claims it meanwhile.
    std::shared_ptr<const files::Descriptor> device = {};
};

/// One per process. Created with designated initializers (`RunContext{.plan = …}`).
struct RunContext {
    const plan::Plan& plan;
    const RunOptions& options;
    ranks::Team& team;
    files::TaskMap tasks;
    std::uint64_t node_memory = 0;  ///< bytes, of the node with the most memory
    RunStorage storage = {};
    NodeShared shared = {};
    RootProcessState root_state = {};
    files::Manifest manifest = {};  ///< files and trees so far; equal in all processes between phases
    std::size_t phases_begun = 0;   ///< number of phases that have begun
    /// Placement of objects of CephFS, queried before the first phase with files there; equal in all processes.
    std::optional<layouts::CephPlacement> placement = {};
    /// Operations of each task in its first pass, for phases that a later phase names in stop.within.
    std::map<std::string, std::vector<std::uint64_t>> operations_done = {};

    bool in_place() const { return plan.data.files.in_place(); }
    /// Opens storage.directory: a link where the user named it, none where the run made it.
    files::ConfinedDirectory open_directory() const {
        return in_place() ? files::ConfinedDirectory::open(storage.directory)
                          : files::ConfinedDirectory::open_made(storage.directory);
    }
    bool is_root() const { return team.location().is_root(); }
    const layouts::CephPlacement* ceph_placement() const { return placement ? &*placement : nullptr; }
    bool stopped() const { return team.control().stop.load() != 0; }
};

/// One sentence: which process ended, and when ("in phase w").
std::string describe_lost_process(const RunContext& context, const std::string& when);

}  // namespace sonde::phases
