// SPDX-License-Identifier: Apache-2.0
#include "phases/process_phase.hpp"

#include "phases/collectives.hpp"
#include "phases/file_preparation.hpp"
#include "phases/layout_line.hpp"
#include "phases/manifest_update.hpp"
#include "phases/phase_facts.hpp"
#include "phases/readback.hpp"
#include "phases/tree_jobs.hpp"

#include <string>

namespace sonde::phases {

TreatmentEffect ProcessPhase::apply_treatments() {
    query_placement(context(), phase());
    return phases::apply_treatments(context(), index(), map());
}

bool ProcessPhase::create_streams() {
    const std::string complaint =
        phase().meta ? prepare_tree(context(), index()) : prepare_files(context(), index(), map());
    return no_process_has_problem(context(), phase().id, complaint, exit_failed) && timed_part_.create_streams(false);
}

void ProcessPhase::write_layout() {
    write_layouts(context(), index(), map());
}

results::PhaseCircumstances ProcessPhase::collect_circumstances(const TimedResult& result,
                                                                const TreatmentEffect& effect) {
    return phases::collect_circumstances(context(), index(), map(), result, effect);
}

bool ProcessPhase::end_phase(TreatmentEffect& effect) {
    if (phase().meta) {
        remove_tree_directories(context(), index());
    }
    const bool is_saved = context().team.all_true(save_manifest(context(), phase()));
    effect.memory_held.clear();
    return is_saved && verify_by_readback(context(), index());
}

}  // namespace sonde::phases
