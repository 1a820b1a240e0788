// SPDX-License-Identifier: Apache-2.0
// Treatments of the machine, and the residency of its caches before a phase.
#include "virtual/simulated_phase.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace sonde::simulate {
namespace {

using nlohmann::ordered_json;

constexpr Time longest_flush = 3600LL * 1'000'000'000;

}  // namespace

/// The fraction of the bytes that tasks will read which their nodes have cached.
treatments::Residency SimulatedPhase::compute_residency() const {
    treatments::Residency sum;
    if (phase().meta || !plan::reads(phase().op) || !reaches_storage(phase().data.backend)) {
        return sum;
    }
    std::set<std::pair<std::uint32_t, std::string>> counted;  // (node, path): each counts once
    for (int task = 0; task < context().tasks.tasks(); ++task) {
        const int owner = plan::writes(phase().op) ? task : files::shift_task(phase().shift, task, context().tasks);
        for (int k = 0; k < map().files_per_task(); ++k) {
            const std::string path = map().path(owner, k);
            if (!platform_.machine.exists(path) || !counted.emplace(client_of(task), path).second) {
                continue;
            }
            const FileId file = platform_.machine.get_file(path);
            sum.is_known = true;
            sum.pages += platform_.machine.file_size(file) / 4096;
            sum.resident += platform_.machine.cached_bytes(client_of(task), file) / 4096;
        }
    }
    return sum;
}

phases::TreatmentEffect SimulatedPhase::apply_treatments() {
    phases::TreatmentEffect effect;
    for (const plan::Treatment& treatment : phase().before) {
        const Time begin = platform_.machine.now();
        std::string text, outcome = "done";
        const std::string& kind = treatment.kind;
        if (kind == "sync") {
            platform_.machine.write_back_all(begin + longest_flush);
            text = "All dirty data of all nodes was written back.";
        } else if (kind == "sleep") {
            platform_.machine.advance_to(begin + treatment.time);
            text = "Waited.";
        } else if (kind == "drop_page_cache" || kind == "fadvise" || kind == "remount") {
            platform_.machine.write_back_all(begin + longest_flush);
            for (int node = 0; node < context().tasks.nodes(); ++node) {
                platform_.machine.drop_client_caches(static_cast<std::uint32_t>(node));
            }
            text = "Dropped the page caches of all nodes.";
        } else {
            outcome = "skipped";
            text = "The model has no such treatment.";
        }
        context().root_state.record->write_line("treatment", {{"phase", phase().id},
                                                              {"kind", kind},
                                                              {"need", treatment.required ? "required" : "best_effort"},
                                                              {"outcome", outcome},
                                                              {"seconds", to_seconds(platform_.machine.now() - begin)},
                                                              {"text", text},
                                                              {"node", 0}});
        if (treatment.required && outcome != "done") {
            context().root_state.outcome.set(
                phases::exit_environment,
                "phase " + phase().id + ": the required treatment " + kind + " cannot be simulated");
            effect.may_phase_begin = false;
            return effect;
        }
    }
    effect.residency = compute_residency();
    return effect;
}

}  // namespace sonde::simulate
