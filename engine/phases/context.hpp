// SPDX-License-Identifier: Apache-2.0
// What the phases of a run share: who asked for what, who takes part, where the files are, what was found out.
#pragma once

#include "files/ceph_placement.hpp"
#include "files/manifest.hpp"
#include "files/task_map.hpp"
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
#include <optional>
#include <string>
#include <vector>

namespace sonde::phases {

/// Where the files of the run lie, as the root has found out and told the others.
struct Storage {
    std::string directory;        ///< the run directory, or the target's where the plan says where files lie
    std::string file_system;      ///< type of the one that holds the target, as in /proc/mounts; empty: not looked at
    bool makes_files = true;      ///< false: no backend of the plan needs any
    bool memory_backed = false;   ///< the target is tmpfs or the like
    plan::Bytes full_stripe = 0;  ///< of the plan, else as the mount tells; 0: not known
    bool stripes_files = false;   ///< target.striping is set on each file, not on the run directory
};

/// In memory that all processes of the node see.
struct Shared {
    Board* board = nullptr;
    workloads::WalkBoard* walk = nullptr;    ///< from the first walk on
    meters::TargetBoard* targets = nullptr;  ///< from the first phase on whose file system tells layouts
};

/// What the root alone knows and does. Elsewhere it stays as it begins.
struct AtRoot {
    records::Writer* record = nullptr;
    std::vector<std::string> hosts;  ///< by node
    Outcome outcome;
};

/// One per process. Made by name (`Context{.plan = …}`): what is left out is as it begins.
struct Context {
    const plan::Plan& plan;
    const RunOptions& options;
    ranks::Team& team;
    files::TaskMap tasks;
    std::uint64_t node_memory = 0;  ///< bytes, of the node that has most
    Storage storage = {};
    Shared shared = {};
    AtRoot at_root = {};
    files::Manifest manifest = {};  ///< what phases have left so far; the same in all processes between two phases
    std::size_t begun = 0;          ///< phases that have begun so far
    /// Where CephFS keeps objects, asked before the first phase that has files there; the same in all processes.
    std::optional<files::CephPlacement> placement = {};
    /// Operations of each task, first pass, in the phases that a later one stays within (stop.within).
    std::map<std::string, std::vector<std::uint64_t>> done = {};

    bool in_place() const { return plan.data.files.in_place(); }
    bool root() const { return team.place().root(); }
    const files::CephPlacement* placed() const { return placement ? &*placement : nullptr; }
    bool stopped() const { return team.control().stop.load() != 0; }
};

/// Which process is gone, and when ("in phase w"), in one sentence.
std::string lost_sentence(const Context& context, const std::string& when);

}  // namespace sonde::phases
