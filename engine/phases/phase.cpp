// SPDX-License-Identifier: Apache-2.0
#include "phases/phase.hpp"

#include "files/file_map.hpp"
#include "phases/complaints.hpp"
#include "phases/errors.hpp"
#include "phases/file_preparation.hpp"
#include "phases/findings.hpp"
#include "phases/layout_line.hpp"
#include "phases/manifest_update.hpp"
#include "phases/phase_begin.hpp"
#include "phases/phase_facts.hpp"
#include "phases/phase_treatments.hpp"
#include "phases/readback.hpp"
#include "phases/result_lines.hpp"
#include "phases/timed_part.hpp"
#include "phases/tree_jobs.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {
namespace {

/// Writes the results of a finished phase. At the root.
void write_results(const RunContext& context, std::size_t index, const files::FileMap& map, const TimedResult& result,
                   const TreatmentEffect& effect, results::DirectionRates& direction_rates) {
    const plan::Phase& phase = context.plan.phases[index];
    const results::PhaseFacts facts = collect_phase_facts(context, phase, result, effect.residency);
    write_result_lines(context, index, result.totals, facts, direction_rates);
    write_layouts(context, index, map);
    if (facts.stopped_by == "error" || facts.stopped_by == "interrupt" || !phase.measured) {
        return;
    }
    write_findings(context, result, facts, collect_circumstances(context, index, map, result, effect));
    direction_rates.add(phase.op, results::compute_rates(result.totals, facts));
}

/// Sets the outcome of the run after a phase. At the root, after its errors were written.
void adopt_outcome(RunContext& context, const plan::Phase& phase, const TimedResult& result) {
    using ranks::NodeControl;
    Outcome& outcome = context.root_state.outcome;
    if (result.totals.mismatches > 0) {
        outcome.set(exit_mismatch, "phase " + phase.id + ": verification found " +
                                       std::to_string(result.totals.mismatches) +
                                       " wrong operations; the first is named in the record");
    }
    if (result.stop == NodeControl::quit_interrupt) {
        outcome.set(exit_interrupted, "interrupted in phase " + phase.id + "; finished phases are kept");
    } else if (result.stop == NodeControl::quit_time_limit) {
        outcome.set(exit_interrupted,
                    "the time limit of the run ended phase " + phase.id + "; finished phases are kept");
    } else if (result.stop == NodeControl::quit_peer_lost) {
        outcome.set(exit_failed, describe_lost_process(context, "in phase " + phase.id));
    } else if (result.stop != 0) {
        outcome.set(exit_failed, "phase " + phase.id + " failed");
    }
}

}  // namespace

bool run_phase(RunContext& context, std::size_t index, results::DirectionRates& direction_rates) {
    const plan::Phase& phase = context.plan.phases[index];
    const files::FileMap map(context.storage.directory, phase.data.files, context.tasks);
    reset_counters(context.team);
    query_placement(context, phase);

    TreatmentEffect effect = apply_treatments(context, index, map);
    if (!effect.may_begin) {
        return false;
    }
    const std::string complaint = phase.meta ? prepare_tree(context, index) : prepare_files(context, index, map);
    TimedPart part(context, index, map);
    if (!have_no_complaint(context, phase.id, complaint, exit_failed) || !part.create_streams(false)) {
        return false;
    }
    write_phase_begin(context, index, map, effect.residency);
    if (!part.run()) {
        return false;
    }
    const TimedResult result = part.collect();

    const nlohmann::json errors = gather_errors(context, phase);
    if (context.is_root()) {
        write_results(context, index, map, result, effect, direction_rates);
        context.manifest.half_write = direction_rates.write;
        context.manifest.half_read = direction_rates.read;
        write_errors(context, phase, errors);
        adopt_outcome(context, phase, result);
    }
    if (result.stop == ranks::NodeControl::quit_peer_lost) {
        return false;
    }
    update_manifest(context, index, result.totals);
    if (phase.meta && result.stop == 0) {
        remove_tree_directories(context, index);
    }
    const bool good = result.stop == 0 && context.team.all_ok(save_manifest(context, phase));
    effect.held.clear();
    return good && verify_by_readback(context, index);
}

}  // namespace sonde::phases
