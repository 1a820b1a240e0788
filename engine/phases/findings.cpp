// SPDX-License-Identifier: Apache-2.0
#include "phases/findings.hpp"

#include "results/tree_findings.hpp"

#include <nlohmann/json.hpp>

namespace sonde::phases {

using nlohmann::ordered_json;

void write_findings(const RunContext& context, const TimedResult& result, const results::PhaseFacts& facts,
                    const results::Circumstances& circumstances) {
    records::Writer& record = *context.root_state.record;
    if (circumstances.phase->meta) {
        for (const ordered_json& finding : results::find_tree_findings(result.totals, circumstances)) {
            record.line("finding", finding);
        }
    }
    for (const ordered_json& finding : results::find_phase_findings(result.totals, facts, circumstances)) {
        record.line("finding", finding);
    }
    for (const auto& [note, tasks] : result.notes) {
        record.line("finding", {{"id", "backend"},
                                {"phase", circumstances.phase->id},
                                {"severity", "info"},
                                {"text", note},
                                {"evidence", {{"tasks", tasks}}}});
    }
}

}  // namespace sonde::phases
