// SPDX-License-Identifier: Apache-2.0
// One run from the first line of the record to the last: who takes part, which phases, what is removed in the end.
#pragma once

#include "meters/clock.hpp"
#include "phases/dataset.hpp"
#include "phases/manifest.hpp"
#include "phases/monitor.hpp"
#include "plan/plan.hpp"
#include "ranks/team.hpp"
#include "records/writer.hpp"
#include "workloads/walk_board.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sonde::phases {

enum ExitCode : int {
    exit_done = 0,
    exit_failed = 1,
    exit_plan = 2,
    exit_environment = 3,
    exit_mismatch = 4,
    exit_interrupted = 5
};

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

/// What the run has come to; the first serious thing wins.
struct Outcome {
    int code = exit_done;
    std::string status = "done";
    std::string text;  ///< one sentence, for people
    void set(int new_code, const std::string& new_status, const std::string& sentence) {
        if (code == exit_done) {
            code = new_code;
            status = new_status;
            text = sentence;
        }
    }
};

/// Everything the phases of a run share. One per process.
struct Context {
    const plan::Plan& plan;
    const RunOptions& options;
    ranks::Team& team;
    TaskMap tasks;
    std::string directory;  ///< the run directory
    std::uint64_t node_memory = 0;
    Board* board = nullptr;             ///< shared by the node
    records::Writer* record = nullptr;  ///< root only
    std::vector<std::string> hosts;     ///< by node, at the root
    Manifest manifest;
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

/// Runs the plan with an already formed team. Called by every process; returns the exit code (the same in all).
int execute(const plan::Plan& plan, const RunOptions& options, ranks::Team& team);

}  // namespace sonde::phases
