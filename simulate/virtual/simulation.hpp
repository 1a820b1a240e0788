// SPDX-License-Identifier: Apache-2.0
// One run of one plan on a machine in virtual time, from the plan's text to the last line of the record.
#pragma once

#include "model/machine.hpp"
#include "phases/context.hpp"
#include "phases/timed_part.hpp"
#include "results/duplex.hpp"
#include "results/validity.hpp"
#include "treatments/residency.hpp"
#include "virtual/channel.hpp"
#include "virtual/conductor.hpp"
#include "virtual/crew.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sonde::simulate {

struct SimulationOptions {
    std::string record;  ///< path, "-" = standard output, or empty
    std::string run_id;
    std::string command;  ///< as typed
    std::string started;  ///< UTC, ISO 8601; empty: now
    std::string traces;   ///< folder for counters and logs; empty: none
    int processes = 0;    ///< of the plan, if it is not to decide; 0: it does
    int nodes = 0;        ///< 0: as many as the cores ask for
    std::uint64_t seed = 1;
    std::vector<Fault> faults;
};

class Simulation {
 public:
    /// Throws plan::PlanError for a plan that cannot be run or simulated, SiteError for a site that lacks something.
    Simulation(plan::Plan plan, SiteModel site, const SimulationOptions& options);
    ~Simulation();
    /// Runs all phases. Exit code as of the engine.
    int run();
    std::uint64_t events() const { return machine_.events(); }

 private:
    bool run_phase(std::size_t index);
    // phase_steps.cpp
    void make_shared_files(const plan::Phase& phase, const files::FileMap& map);
    void lay_board();
    void lay_walk_boards();
    std::vector<workloads::StreamJob> jobs_of(std::size_t index, const files::FileMap& map);
    phases::Measured time(std::size_t index, const files::FileMap& map, std::vector<workloads::StreamJob>& jobs,
                          const treatments::Residency& residency);
    patterns::FileStripes stripes_of(const std::string& path);
    void add_targets(const std::vector<std::unique_ptr<workloads::Stream>>& streams, results::Totals& totals) const;
    void settle_errors(const plan::Phase& phase, const phases::Measured& measured);
    results::Circumstances circumstances(std::size_t index, const treatments::Residency& residency) const;
    // treating.cpp
    bool treat(std::size_t index);
    treatments::Residency residency(const plan::Phase& phase, const files::FileMap& map) const;
    // record_head.cpp
    void write_head();
    void write_end();
    void write_traces() const;

    std::uint32_t client_of(int task) const { return static_cast<std::uint32_t>(context_.tasks.node_of(task)); }

    plan::Plan plan_;
    SimulationOptions options_;
    phases::RunOptions run_options_;
    Conductor conductor_;
    Machine machine_;
    Directories directories_;
    Crew team_;
    phases::Context context_;
    std::unique_ptr<records::Writer> writer_;
    results::HalfRates half_;
    std::byte* board_memory_ = nullptr;
    std::size_t board_bytes_ = 0;
    std::vector<workloads::WalkBoard*> walks_;  ///< by node, from the first walk on
    std::vector<std::byte> buffer_;             ///< all tasks'
};

}  // namespace sonde::simulate
