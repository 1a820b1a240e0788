// SPDX-License-Identifier: Apache-2.0
#include "phases/findings.hpp"

#include "results/tree_report.hpp"

#include <nlohmann/json.hpp>

namespace sonde::phases {

using nlohmann::ordered_json;

void write_findings(const Context& context, const Measured& measured, const results::PhaseFacts& facts,
                    const results::Circumstances& about) {
    records::Writer& record = *context.at_root.record;
    if (about.phase->meta) {
        for (const ordered_json& finding : results::findings_of_tree(measured.totals, about)) {
            record.line("finding", finding);
        }
    }
    for (const ordered_json& finding : results::findings_of(measured.totals, facts, about)) {
        record.line("finding", finding);
    }
    for (const auto& [note, tasks] : measured.notes) {
        record.line("finding", {{"id", "backend"},
                                {"phase", about.phase->id},
                                {"severity", "info"},
                                {"text", note},
                                {"evidence", {{"tasks", tasks}}}});
    }
}

}  // namespace sonde::phases
