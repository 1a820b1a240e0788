// SPDX-License-Identifier: Apache-2.0
// A phase on the threads of this process and its team.
#pragma once

#include "phases/phase_steps.hpp"
#include "phases/timed_part.hpp"

namespace sonde::phases {

class ProcessPhase final : public PhaseSteps {
 public:
    ProcessPhase(RunContext& context, std::size_t index)
        : PhaseSteps(context, index), timed_part_(context, index, map()) {}

    TreatmentEffect apply_treatments() override;
    bool create_streams() override;
    bool run_streams() override { return timed_part_.run(); }
    TimedResult collect() override { return timed_part_.collect(); }
    void write_layout() override;
    results::PhaseCircumstances collect_circumstances(const TimedResult& result,
                                                      const TreatmentEffect& effect) override;
    bool end_phase(TreatmentEffect& effect) override;

 private:
    TimedPart timed_part_;
};

}  // namespace sonde::phases
