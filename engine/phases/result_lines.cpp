// SPDX-License-Identifier: Apache-2.0
#include "phases/result_lines.hpp"

#include "results/node_series_lines.hpp"
#include "results/tables.hpp"
#include "results/target_lines.hpp"
#include "results/tree_findings.hpp"

#include <nlohmann/json.hpp>
#include <optional>

namespace sonde::phases {
namespace {

using nlohmann::ordered_json;

/// Share of the bytes of a phase with op train that is taken to come from the page cache: what was there before it.
/// Negative: unknown, also when it read its data several times.
double estimate_cached_share(const plan::Phase& phase, const results::Totals& totals,
                             const results::PhaseFacts& facts) {
    if (phase.data.io.direct) {
        return 0;
    }
    return totals.bytes[meters::kind_read] > totals.planned_bytes ? -1 : facts.residency;
}

ordered_json make_phase_end(const RunContext& context, const plan::Phase& phase, const results::Totals& totals,
                            const results::PhaseFacts& facts, const results::DirectionRates& direction_rates) {
    ordered_json end = results::make_phase_end_line(totals, facts);
    end["measured"] = phase.measured;
    const std::optional<results::RateDecline> droop =
        phase.meta ? results::compute_rate_decline(totals, phase.op) : std::nullopt;
    if (droop) {
        end["droop"] = {{"first_ops_per_s", droop->first_ops_per_s},
                        {"last_ops_per_s", droop->last_ops_per_s},
                        {"ratio", droop->ratio()}};
    }
    if (phase.op == plan::Op::walk) {
        end["walk"] = {{"directories", totals.listed_directories}, {"examined", totals.examined_entries}};
        if (phase.meta->find) {
            end["walk"]["matched"] = totals.matched_entries;
        }
    }
    end["tasks"] = context.tasks.tasks();
    if (phase.op == plan::Op::train) {
        end["training"] = results::training_json(totals.training, totals.bytes[meters::kind_read],
                                                 estimate_cached_share(phase, totals, facts));
    }
    if (phase.op == plan::Op::mixed) {
        results::add_stream_directions(end, totals);
    }
    if (phase.op == plan::Op::duplex && end.contains("streams")) {
        results::add_duplex(end, phase, direction_rates);
    }
    return end;
}

}  // namespace

void write_result_lines(const RunContext& context, std::size_t index, const results::Totals& totals,
                        const results::PhaseFacts& facts, const results::DirectionRates& direction_rates) {
    const plan::Phase& phase = context.plan.phases[index];
    const auto write = [&](const char* event, const ordered_json& line) {
        context.root_state.record->write_line(event, with_phase_members(phase, index, line));
    };
    write("phase_end", make_phase_end(context, phase, totals, facts, direction_rates));
    write("series", results::make_series_line(totals));
    for (const ordered_json& line : results::make_node_series_lines(totals)) {
        write("series", line);
    }
    for (const ordered_json& line : results::make_target_series_lines(totals)) {
        write("series", line);
    }
    for (const ordered_json& line : results::make_histogram_lines(totals)) {
        write("histogram", line);
    }
    write("nodes", results::make_node_line(totals, facts));
    if (const ordered_json targets = results::make_target_line(totals); !targets.is_null()) {
        write("targets", targets);
    }
    for (const ordered_json& line : results::make_task_lines(totals, facts)) {
        write("tasks", line);
    }
}

nlohmann::ordered_json with_phase_members(const plan::Phase& phase, std::size_t index,
                                          const nlohmann::ordered_json& line) {
    nlohmann::ordered_json members{{"phase", phase.id}, {"index", index}, {"op", plan::operation_name(phase.op)}};
    members.update(line);
    return members;
}

void write_findings(const RunContext& context, const results::Totals& totals, const std::map<std::string, int>& notes,
                    const results::PhaseFacts& facts, const results::PhaseCircumstances& circumstances) {
    records::Writer& record = *context.root_state.record;
    if (circumstances.phase->meta) {
        for (const ordered_json& finding : results::find_tree_findings(totals, circumstances)) {
            record.write_line("finding", finding);
        }
    }
    for (const ordered_json& finding : results::find_phase_findings(totals, facts, circumstances)) {
        record.write_line("finding", finding);
    }
    for (const auto& [note, tasks] : notes) {
        record.write_line("finding", {{"id", "backend"},
                                      {"phase", circumstances.phase->id},
                                      {"severity", "info"},
                                      {"text", note},
                                      {"evidence", {{"tasks", tasks}}}});
    }
}

}  // namespace sonde::phases
