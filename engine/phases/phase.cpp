// SPDX-License-Identifier: Apache-2.0
#include "phases/phase.hpp"

#include "files/file_map.hpp"
#include "phases/agree.hpp"
#include "phases/announce.hpp"
#include "phases/errors.hpp"
#include "phases/facts.hpp"
#include "phases/findings.hpp"
#include "phases/layouts.hpp"
#include "phases/lines.hpp"
#include "phases/prepare.hpp"
#include "phases/read_back.hpp"
#include "phases/remember.hpp"
#include "phases/timed_part.hpp"
#include "phases/treat.hpp"
#include "phases/tree_jobs.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {
namespace {

/// What the record says of a phase that is over. At the root.
void report(const Context& context, std::size_t index, const files::FileMap& map, const Measured& measured,
            const Treated& treated, results::HalfRates& half) {
    const plan::Phase& phase = context.plan.phases[index];
    const results::PhaseFacts facts = facts_of(context, phase, measured, treated.residency);
    write_lines(context, index, measured.totals, facts, half);
    write_layouts(context, index, map);
    if (facts.stopped_by == "error" || facts.stopped_by == "interrupt" || !phase.measured) {
        return;
    }
    write_findings(context, measured, facts, circumstances_of(context, index, map, measured, treated));
    half.remember(phase.op, results::rates_of(measured.totals, facts));
}

/// What a phase that is over means for the run. At the root, after its errors.
void take_outcome(Context& context, const plan::Phase& phase, const Measured& measured) {
    using ranks::NodeControl;
    Outcome& outcome = context.at_root.outcome;
    if (measured.totals.mismatches > 0) {
        outcome.set(exit_mismatch, "phase " + phase.id + ": verification found " +
                                       std::to_string(measured.totals.mismatches) +
                                       " wrong operations; the first is named in the record");
    }
    if (measured.stop == NodeControl::quit_interrupt) {
        outcome.set(exit_interrupted, "interrupted in phase " + phase.id + "; finished phases are kept");
    } else if (measured.stop == NodeControl::quit_time_limit) {
        outcome.set(exit_interrupted,
                    "the time limit of the run ended phase " + phase.id + "; finished phases are kept");
    } else if (measured.stop == NodeControl::quit_peer_lost) {
        outcome.set(exit_failed, lost_sentence(context, "in phase " + phase.id));
    } else if (measured.stop != 0) {
        outcome.set(exit_failed, "phase " + phase.id + " failed");
    }
}

}  // namespace

bool run_phase(Context& context, std::size_t index, results::HalfRates& half) {
    const plan::Phase& phase = context.plan.phases[index];
    const files::FileMap map(context.storage.directory, phase.data.files, context.tasks);
    begin_counting(context.team);
    ask_placement(context, phase);

    Treated treated = treat(context, index, map);
    if (!treated.may_begin) {
        return false;
    }
    const std::string complaint = phase.meta ? prepare_tree(context, index) : prepare_files(context, index, map);
    TimedPart part(context, index, map);
    if (!agree(context, phase.id, complaint, exit_failed) || !part.set_up(false)) {
        return false;
    }
    announce(context, index, map, treated.residency);
    if (!part.run()) {
        return false;
    }
    const Measured measured = part.collect();

    const nlohmann::json errors = gather_errors(context, phase);
    if (context.root()) {
        report(context, index, map, measured, treated, half);
        context.manifest.half_write = half.write;
        context.manifest.half_read = half.read;
        write_errors(context, phase, errors);
        take_outcome(context, phase, measured);
    }
    if (measured.stop == ranks::NodeControl::quit_peer_lost) {
        return false;
    }
    remember(context, index, measured.totals);
    if (phase.meta && measured.stop == 0) {
        finish_tree(context, index);
    }
    const bool good = measured.stop == 0 && context.team.all(save_manifest(context, phase));
    treated.held.clear();
    return good && read_back(context, index);
}

}  // namespace sonde::phases
