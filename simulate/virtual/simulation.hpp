// SPDX-License-Identifier: Apache-2.0
// One run of a plan on a machine in virtual time, from the plan to the last line of the record.
#pragma once

#include "model/machine.hpp"
#include "phases/context.hpp"
#include "phases/timed_part.hpp"
#include "results/duplex.hpp"
#include "results/phase_findings.hpp"
#include "treatments/residency.hpp"
#include "virtual/simulated_backend.hpp"
#include "virtual/simulated_directories.hpp"
#include "virtual/simulated_team.hpp"
#include "virtual/storageless_backends.hpp"
#include "virtual/task_scheduler.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sonde::simulate {

struct SimulationOptions {
    std::string record;  ///< path, "-" = standard output, or empty
    std::string run_id;
    std::string command;  ///< as typed
    std::string started;  ///< UTC, ISO 8601; empty: now
    std::string traces;   ///< directory for counters and logs; empty: none are written
    int processes = 0;    ///< overrides the plan's; 0: the plan's
    int nodes = 0;        ///< 0: as few as have a core for each task
    std::uint64_t seed = 1;
    std::vector<Fault> faults;
};

class Simulation {
 public:
    /// Throws plan::PlanError for a plan that cannot be run or simulated, SiteError for a site that cannot run it.
    Simulation(plan::Plan plan, SiteModel site, const SimulationOptions& options);
    ~Simulation();
    /// Runs all phases and returns the exit code of the engine.
    int run();
    std::uint64_t handled_event_count() const { return machine_.handled_event_count(); }

 private:
    bool run_phase(std::size_t index);
    // phase_steps.cpp
    void create_shared_files(const plan::Phase& phase, const files::FileMap& map);
    void allocate_board();
    void reset_walk_boards();
    std::vector<workloads::StreamJob> make_jobs(std::size_t index, const files::FileMap& map);
    phases::TimedResult measure_phase(std::size_t index, const files::FileMap& map,
                                      std::vector<workloads::StreamJob>& jobs, const treatments::Residency& residency);
    patterns::FileStripes file_stripes(const std::string& path);
    void add_target_totals(const std::vector<std::unique_ptr<workloads::TaskStream>>& streams,
                           results::Totals& totals) const;
    void write_errors(const plan::Phase& phase, const phases::TimedResult& measured);
    results::Circumstances make_circumstances(std::size_t index, const treatments::Residency& residency) const;
    // treatments.cpp
    /// False: a required treatment cannot be simulated.
    bool apply_treatments(std::size_t index);
    treatments::Residency compute_residency(const plan::Phase& phase, const files::FileMap& map) const;
    // record_lines.cpp
    void write_head();
    void write_end();
    void write_traces() const;

    const backends::Backend& backend(const std::string& name) const;
    std::uint32_t client_of(int task) const { return static_cast<std::uint32_t>(context_.tasks.node_of(task)); }

    plan::Plan plan_;
    SimulationOptions options_;
    phases::RunOptions run_options_;
    TaskScheduler scheduler_;
    Machine machine_;
    SimulatedDirectories directories_;
    SimulatedStorage storage_{scheduler_, directories_};
    const backends::Backend simulated_backend_ = make_simulated_backend(storage_);
    const backends::Backend null_backend_ = make_storageless_backend(null_backend_name, storage_);
    const backends::Backend paced_backend_ = make_storageless_backend(paced_backend_name, storage_);
    SimulatedTeam team_;
    phases::RunContext context_;
    std::unique_ptr<records::Writer> writer_;
    results::DirectionRates half_rates_;
    std::byte* board_memory_ = nullptr;
    std::size_t board_bytes_ = 0;
    std::vector<workloads::WalkBoard*> walk_boards_;  ///< by node; empty until the first walk
    std::vector<std::byte> buffer_;                   ///< shared by all tasks, which run in turn
};

}  // namespace sonde::simulate
