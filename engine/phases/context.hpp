// SPDX-License-Identifier: Apache-2.0
// What the phases of a run share: who asked for what, who takes part, where the files are, what was found out.
#pragma once

#include "files/manifest.hpp"
#include "files/task_map.hpp"
#include "phases/board.hpp"
#include "phases/outcome.hpp"
#include "plan/plan.hpp"
#include "ranks/team.hpp"
#include "records/writer.hpp"
#include "workloads/walk_board.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sonde::phases {

/// Memory of the node that one run after the other of a team uses; empty before the first.
struct Ground {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
};

struct RunOptions {
    std::string record;  ///< path, "-" or empty
    std::string run_id;
    std::string command;  ///< as typed
    int stage =
        -1;  ///< run only this stage (phases between two `process = "separate"`); -1 = all of them in this process
    records::Writer::Listener listener = {};  ///< root: hears each line of the record
    Ground* ground = nullptr;                 ///< of a team that runs several plans; null: it runs one
};

/// Number of stages of a plan, and the stage of each phase.
std::vector<int> stages_of(const plan::Plan& plan);

/// Everything the phases of a run share. One per process.
struct Context {
    const plan::Plan& plan;
    const RunOptions& options;
    ranks::Team& team;
    files::TaskMap tasks;
    std::string directory;  ///< the run directory
    std::uint64_t node_memory = 0;
    Board* board = nullptr;             ///< shared by the node
    records::Writer* record = nullptr;  ///< root only
    std::vector<std::string> hosts;     ///< by node, at the root
    files::Manifest manifest;
    Outcome outcome;             ///< at the root
    bool memory_backed = false;  ///< the target is tmpfs or the like
    bool makes_files = true;
    std::string file_system = {};          ///< type of the one that holds the target, as in /proc/mounts
    workloads::WalkBoard* walk = nullptr;  ///< shared by the node, from the first walk on
    std::size_t begun = 0;                 ///< phases that have begun so far

    bool in_place() const { return plan.data.files.in_place(); }
    bool root() const { return team.place().root(); }
    bool stopped() const { return team.control().stop.load() != 0; }
};

/// Which process is gone, and when ("in phase w"), in one sentence.
std::string lost_sentence(const Context& context, const std::string& when);

}  // namespace sonde::phases
