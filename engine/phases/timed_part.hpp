// SPDX-License-Identifier: Apache-2.0
// The timed part of a phase on one process: its streams are made, run together, and what they counted is added up.
// Every process takes the same steps in the same order.
#pragma once

#include "files/file_map.hpp"
#include "payload/payload.hpp"
#include "phases/context.hpp"
#include "phases/jobs.hpp"
#include "results/summary.hpp"
#include "results/totals.hpp"
#include "workloads/data.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sonde::phases {

/// What the timed part has come to. Whole at the root; at other leaders of nodes, of their node.
struct Measured {
    results::Totals totals;
    std::uint32_t stop = 0;     ///< ranks::NodeControl::quit_… that ended it early; 0 = none. The same everywhere
    std::int64_t drift_ns = 0;  ///< time-stamp counter against CLOCK_MONOTONIC over the phase, on this node
    double other_cpu_s = -1;    ///< CPU seconds that others used on this node; < 0 = unknown
    std::vector<results::NodeClock> clocks;  ///< at the root, of runs of several nodes
    std::map<std::string, int> notes;        ///< what backends did without -> number of this process's streams
};

/// Empties what the last timed part left in the control block of the node, before anybody can write there again. All
/// processes call it.
void begin_counting(ranks::Team& team);

class TimedPart {
 public:
    TimedPart(Context& context, std::size_t index, const files::FileMap& map)
        : context_(context), index_(index), phase_(context.plan.phases[index]), map_(map) {}

    /// Makes jobs, meters and streams. `verification`: reads back what the phase wrote; nothing is planned, and the
    /// monitor sees no phase. False when that is impossible: then the outcome says why.
    bool set_up(bool verification);
    /// Runs the streams and waits for all. False when the threads could not be made; then nothing has run.
    bool run();
    /// Adds up what the streams have counted: a node's by its leader, all nodes' at the root.
    Measured collect();

 private:
    std::vector<results::NodeClock> gather_clocks();
    void make_streams(const std::vector<StreamPlace>& places, bool verification);
    void make_walk_board();
    void find_asker();
    void add_targets(results::Totals& totals);
    void work(std::size_t stream);

    Context& context_;
    std::size_t index_;
    const plan::Phase& phase_;
    const files::FileMap& map_;
    std::vector<workloads::StreamJob> jobs_;
    std::unique_ptr<payload::Base> base_;
    std::vector<std::unique_ptr<workloads::Stream>> streams_;
    std::uint32_t stop_ = 0;
    results::NodeClock clock_;  // of this node
    std::int64_t drift_ns_ = 0;
    double other_cpu_s_ = -1;
    bool verification_ = false;
    workloads::AskStripes ask_stripes_;  // of this process; empty: it cannot tell targets apart
    bool attributes_ = false;            // operations are given to targets: the same on all processes
};

}  // namespace sonde::phases
