// SPDX-License-Identifier: Apache-2.0
// The timed part of a phase in one process: creates its streams, runs them together, and adds up their counters. Every
// process calls the same functions in the same order.
#pragma once

#include "files/confined_directory.hpp"
#include "files/file_map.hpp"
#include "payload/payload.hpp"
#include "phases/context.hpp"
#include "phases/stream_jobs.hpp"
#include "results/summary.hpp"
#include "results/totals.hpp"
#include "workloads/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sonde::phases {

/// Result of the timed part: of all nodes at the root, of their node at other leaders.
struct TimedResult {
    results::Totals totals;
    std::uint32_t stop_reason = 0;  ///< ranks::NodeControl::quit_… that ended it early; 0 = none. The same everywhere
    std::int64_t drift_ns = 0;  ///< difference of time-stamp counter and CLOCK_MONOTONIC over the phase, on this node
    double other_cores = -1;    ///< cores of this node that other processes used, as a mean; < 0 = unknown
    std::vector<results::NodeClock> clocks;  ///< at the root, of runs of several nodes
    std::map<std::string, int>
        missing_features;  ///< features that backends could not use -> number of this process's streams
};

/// Resets the counters and errors in the control block of the node before the next timed part. All processes call it.
void reset_counters(ranks::Team& team);

class TimedPart {
 public:
    TimedPart(RunContext& context, std::size_t index, const files::FileMap& map)
        : context_(context), index_(index), phase_(context.plan.phases[index]), map_(map) {}

    /// Creates jobs, meters and streams. With `verification` they read what the phase wrote, and the monitor shows no
    /// phase. Returns false on failure; the outcome has the reason.
    bool create_streams(bool verification);
    /// Runs the streams and waits for all. Returns false when a thread could not be created; then no stream has run.
    bool run();
    /// Adds up the counters of the streams: of a node at its leader, of all nodes at the root.
    TimedResult collect();

 private:
    std::vector<results::NodeClock> gather_clocks();
    void make_streams(const std::vector<StreamAssignment>& assignments, bool verification);
    void open_root(workloads::StreamJob& job);
    void make_walk_board();
    void choose_stripe_query();
    void add_targets(results::Totals& totals);
    void run_stream(std::size_t stream);

    RunContext& context_;
    std::size_t index_;
    const plan::Phase& phase_;
    const files::FileMap& map_;
    std::map<std::string, files::ConfinedDirectory> roots_;  ///< open directories of the jobs' files, by path
    std::vector<workloads::StreamJob> jobs_;
    std::unique_ptr<payload::PayloadBase> base_;
    std::vector<std::unique_ptr<workloads::TaskStream>> streams_;
    std::uint32_t stop_reason_ = 0;
    results::NodeClock clock_;  // of this node
    std::int64_t drift_ns_ = 0;
    double node_cpu_s_ = -1, duration_s_ = 0;  // CPU seconds of all processes of this node, while the streams ran
    bool is_verification_ = false;
    workloads::StripeQuery stripe_query_;  // of this process; empty = layouts cannot be read
    bool counts_targets_ = false;          // operations are attributed to targets; equal in all processes
};

}  // namespace sonde::phases
