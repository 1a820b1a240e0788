// SPDX-License-Identifier: Apache-2.0
// The steps of a phase that depend on where it runs: on the threads of processes, or on fibers in virtual time.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "phases/phase_treatments.hpp"
#include "phases/timed_part.hpp"
#include "results/phase_findings.hpp"

#include <cstddef>

namespace sonde::phases {

/// The steps of one phase. Every process has its own object and calls the same functions in this order. A function that
/// returns false ends the run; the outcome has the reason.
class PhaseSteps {
 public:
    PhaseSteps(RunContext& context, std::size_t index)
        : context_(context),
          index_(index),
          phase_(context.plan.phases[index]),
          map_(context.storage.directory, phase_.data.files, context.tasks) {}
    virtual ~PhaseSteps() = default;
    PhaseSteps(const PhaseSteps&) = delete;
    PhaseSteps& operator=(const PhaseSteps&) = delete;

    /// Applies the treatments before the phase, writes their lines, and measures the residency of the data to read.
    virtual TreatmentEffect apply_treatments() = 0;
    /// Prepares the files and creates the streams; their meters have the planned amounts.
    virtual bool create_streams() = 0;
    /// Runs the streams and waits for all.
    virtual bool run_streams() = 0;
    /// Adds up the counters of the streams.
    virtual TimedResult collect() = 0;
    /// Writes the `layout` line. At the root.
    virtual void write_layout() = 0;
    /// Facts for the findings. At the root.
    virtual results::PhaseCircumstances collect_circumstances(const TimedResult& result,
                                                              const TreatmentEffect& effect) = 0;
    /// Finishes a phase whose streams all ended without error, and ends its treatments.
    virtual bool end_phase(TreatmentEffect& effect) = 0;

    RunContext& context() const { return context_; }
    std::size_t index() const { return index_; }
    const plan::Phase& phase() const { return phase_; }
    const files::FileMap& map() const { return map_; }

 private:
    RunContext& context_;
    std::size_t index_;
    const plan::Phase& phase_;
    files::FileMap map_;
};

}  // namespace sonde::phases
