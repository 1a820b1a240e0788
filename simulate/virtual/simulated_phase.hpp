// SPDX-License-Identifier: Apache-2.0
// A phase on a simulated machine: its tasks are fibers in virtual time.
#pragma once

#include "payload/payload.hpp"
#include "phases/phase_steps.hpp"
#include "virtual/platform.hpp"
#include "workloads/stream.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sonde::simulate {

class SimulatedPhase final : public phases::PhaseSteps {
 public:
    SimulatedPhase(phases::RunContext& context, std::size_t index, Platform& platform)
        : PhaseSteps(context, index), platform_(platform) {}

    phases::TreatmentEffect apply_treatments() override;
    bool create_streams() override;
    bool run_streams() override;
    phases::TimedResult collect() override;
    void write_layout() override {}
    results::PhaseCircumstances collect_circumstances(const phases::TimedResult& result,
                                                      const phases::TreatmentEffect& effect) override;
    bool end_phase(phases::TreatmentEffect& /*effect*/) override { return true; }

 private:
    void create_shared_files();
    void reset_walk_boards();
    void create_jobs();
    patterns::FileStripes file_stripes(const std::string& path);
    void write_bottleneck();
    void add_target_totals(results::Totals& totals) const;
    // treatments.cpp
    treatments::Residency compute_residency() const;

    std::uint32_t client_of(int task) const { return static_cast<std::uint32_t>(context().tasks.node_of(task)); }
    meters::StreamMeter& meter(const workloads::StreamJob& job) const {
        return context().shared.board->meter(job.stream_index);
    }

    Platform& platform_;
    std::vector<PartLoad> loads_at_start_;
    std::vector<workloads::StreamJob> jobs_;
    std::unique_ptr<payload::PayloadBase> base_;
    std::vector<std::unique_ptr<workloads::TaskStream>> streams_;
};

}  // namespace sonde::simulate
