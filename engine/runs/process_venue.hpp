// SPDX-License-Identifier: Apache-2.0
// The threads and processes of a team on the nodes of this machine as the venue of a run.
#pragma once

#include "files/record_file.hpp"
#include "plan/plan.hpp"
#include "ranks/team.hpp"
#include "runs/monitor.hpp"
#include "runs/venue.hpp"

#include <optional>

namespace sonde::runs {

class ProcessVenue final : public Venue {
 public:
    /// The arguments outlive the venue; the team is already formed. All processes of the team call it.
    ProcessVenue(const plan::Plan& plan, const phases::RunOptions& options, ranks::Team& team);

    phases::RunContext& context() override { return context_; }
    std::optional<int> prepare() override;
    std::int64_t elapsed_ns() const override;
    RunDescription describe_run() override;
    std::vector<nlohmann::ordered_json> describe_nodes() override;
    void begin_phases() override;
    std::unique_ptr<phases::PhaseSteps> begin_phase(std::size_t index) override;
    std::optional<files::Removal> remove_files(int code, bool is_team_lost) override;
    void remove_files_after_exception() override;
    void close() override { monitor_.reset(); }

 private:
    nlohmann::json open_record_and_inspect();
    int end_before_start(const nlohmann::json& facts) const;

    std::int64_t epoch_ns_;  // CLOCK_MONOTONIC at time 0 of the record
    std::string started_;
    phases::RunContext context_;
    std::optional<files::RecordFile> record_file_;  // root
    std::unique_ptr<records::Writer> writer_;       // root; writes to record_file_
    std::unique_ptr<Monitor> monitor_;              // root
};

}  // namespace sonde::runs
