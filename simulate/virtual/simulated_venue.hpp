// SPDX-License-Identifier: Apache-2.0
// A described machine in virtual time as the venue of a run.
#pragma once

#include "files/record_file.hpp"
#include "runs/venue.hpp"
#include "virtual/platform.hpp"

#include <memory>
#include <optional>
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

class SimulatedVenue final : public runs::Venue {
 public:
    /// Throws plan::PlanError for a plan that cannot be run or simulated, SystemModelError for a site that cannot run
    /// it.
    SimulatedVenue(plan::Plan plan, SystemModel site, SimulationOptions options);
    ~SimulatedVenue() override;
    SimulatedVenue(const SimulatedVenue&) = delete;
    SimulatedVenue& operator=(const SimulatedVenue&) = delete;

    phases::RunContext& context() override { return context_; }
    std::optional<int> prepare() override;
    std::int64_t elapsed_ns() const override { return platform_.machine.now(); }
    runs::RunDescription describe_run() override;
    std::vector<nlohmann::ordered_json> describe_nodes() override;
    void begin_phases() override;
    std::unique_ptr<phases::PhaseSteps> begin_phase(std::size_t index) override;
    std::optional<files::Removal> remove_files(int /*code*/, bool /*is_team_lost*/) override { return std::nullopt; }
    void remove_files_after_exception() override {}
    void close() override;

 private:
    void allocate_board();

    std::vector<std::string> unused_members_;  // of the plan as given
    plan::Plan plan_;
    SimulationOptions options_;
    phases::RunOptions run_options_;
    Platform platform_;
    phases::RunContext context_;
    std::optional<files::RecordFile> record_file_;
    std::unique_ptr<records::Writer> writer_;  // writes to record_file_
    std::byte* board_memory_ = nullptr;
    std::size_t board_bytes_ = 0;
};

}  // namespace sonde::simulate
