// SPDX-License-Identifier: Apache-2.0
#include "phases/phase.hpp"

#include "phases/errors.hpp"
#include "phases/manifest_update.hpp"
#include "phases/phase_begin.hpp"
#include "phases/phase_facts.hpp"
#include "phases/result_lines.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {
namespace {

/// Writes the results of a finished phase. At the root.
void write_results(PhaseSteps& steps, const TimedResult& result, const TreatmentEffect& effect,
                   results::DirectionRates& direction_rates) {
    const plan::Phase& phase = steps.phase();
    const results::PhaseFacts facts = collect_phase_facts(steps.context(), phase, result, effect.residency);
    write_result_lines(steps.context(), steps.index(), result.totals, facts, direction_rates);
    steps.write_layout();
    if (facts.stopped_by == "error" || facts.stopped_by == "interrupt" || !phase.measured) {
        return;
    }
    write_findings(steps.context(), result.totals, result.missing_features, facts,
                   steps.collect_circumstances(result, effect));
    direction_rates.set_rate(phase.op, results::compute_rates(result.totals, facts));
}

/// Sets the outcome of the run after a phase. At the root, after its errors were written.
void apply_outcome(RunContext& context, const plan::Phase& phase, const TimedResult& result) {
    using ranks::NodeControl;
    Outcome& outcome = context.root_state.outcome;
    if (result.totals.mismatch_count > 0) {
        outcome.set(exit_mismatch, "phase " + phase.id + ": verification found " +
                                       std::to_string(result.totals.mismatch_count) +
                                       " wrong operations; the first is named in the record");
    }
    if (result.stop_reason == NodeControl::quit_interrupt) {
        outcome.set(exit_interrupted, "interrupted in phase " + phase.id + "; finished phases are kept");
    } else if (result.stop_reason == NodeControl::quit_time_limit) {
        outcome.set(exit_interrupted,
                    "the time limit of the run ended phase " + phase.id + "; finished phases are kept");
    } else if (result.stop_reason == NodeControl::quit_peer_lost) {
        outcome.set(exit_failed, describe_lost_process(context, "in phase " + phase.id));
    } else if (result.stop_reason != 0) {
        outcome.set(exit_failed, "phase " + phase.id + " failed");
    }
}

}  // namespace

bool run_phase(PhaseSteps& steps, results::DirectionRates& direction_rates) {
    RunContext& context = steps.context();
    const plan::Phase& phase = steps.phase();
    reset_counters(context.team);
    TreatmentEffect effect = steps.apply_treatments();
    if (!effect.may_phase_begin || !steps.create_streams()) {
        return false;
    }
    write_phase_begin(context, steps.index(), steps.map(), effect.residency);
    if (!steps.run_streams()) {
        return false;
    }
    const TimedResult result = steps.collect();

    const nlohmann::json errors = gather_errors(context, phase);
    if (context.is_root()) {
        write_results(steps, result, effect, direction_rates);
        context.manifest.last_write_rate = direction_rates.write;
        context.manifest.last_read_rate = direction_rates.read;
        write_errors(context, phase, errors);
        apply_outcome(context, phase, result);
    }
    if (result.stop_reason == ranks::NodeControl::quit_peer_lost) {
        return false;
    }
    update_manifest(context, steps.index(), result.totals);
    return result.stop_reason == 0 && steps.end_phase(effect);
}

}  // namespace sonde::phases
