// SPDX-License-Identifier: Apache-2.0
#include "phases/readback.hpp"

#include "files/file_map.hpp"
#include "phases/errors.hpp"
#include "phases/result_lines.hpp"
#include "phases/timed_part.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sonde::phases {
namespace {

/// The phase that reads what `phase` has written; none when readback is not requested.
std::optional<plan::Phase> make_reading_plan(const plan::Phase& phase, int nodes) {
    const bool is_requested = phase.data.verify == plan::Verify::readback || phase.data.verify == plan::Verify::both;
    const bool items = phase.meta && phase.op == plan::Op::create && phase.meta->write_bytes > 0;
    if (!is_requested || (phase.op != plan::Op::write && phase.op != plan::Op::rewrite && !items)) {
        return std::nullopt;
    }
    plan::Phase reading = phase;
    reading.op = plan::Op::read;
    reading.data_of = phase.id;
    reading.data.verify = plan::Verify::on_read;
    reading.data.io.fsync = plan::Fsync::none;
    reading.stop = {};
    reading.before.clear();
    reading.barrier = plan::Barrier::phase;
    if (!reading.data.io.collective && !reading.data.io.view) {
        reading.shift = {nodes > 1 ? plan::ShiftBy::nodes : plan::ShiftBy::tasks, 1, 1};
    }
    if (items) {
        reading.op = plan::Op::read_items;
        reading.meta->read_bytes = reading.meta->write_bytes;
        reading.meta->order = plan::SelectOrder::creation;
        reading.meta->sync = false;
    }
    return reading;
}

}  // namespace

bool verify_by_readback(RunContext& context, std::size_t index) {
    const plan::Phase& phase = context.plan.phases[index];
    const std::optional<plan::Phase> reading = make_reading_plan(phase, context.team.location().nodes);
    if (!reading) {
        return true;
    }
    plan::Plan shadow = context.plan;
    shadow.phases[index] = *reading;
    RunContext verification{
        .plan = shadow,
        .options = context.options,
        .team = context.team,
        .tasks = context.tasks,
        .node_memory = context.node_memory,
        .storage = context.storage,
        .shared = context.shared,
        .root_state = {.record = context.root_state.record, .hosts = context.root_state.hosts, .outcome = {}},
        .manifest = context.manifest};
    const files::FileMap map(context.storage.directory, reading->data.files, context.tasks);
    TimedPart check(verification, index, map);
    reset_counters(context.team);
    if (!check.create_streams(true) || !check.run()) {
        context.root_state.outcome = verification.root_state.outcome;
        return false;
    }
    const TimedResult result = check.collect();
    const nlohmann::json errors = gather_errors(verification, *reading);
    if (context.is_root()) {
        write_errors(verification, *reading, errors);
        context.root_state.record->write_line(
            "verification",
            with_phase_members(phase, index,
                               {{"checked_bytes", result.totals.checked_bytes},
                                {"mismatches", result.totals.mismatch_count},
                                {"seconds", static_cast<double>(result.totals.longest_verify_ns) / 1e9}}));
        const Outcome& outcome = verification.root_state.outcome;
        if (outcome.code != exit_done) {
            context.root_state.outcome.set(outcome.code, outcome.text);
        }
        if (result.totals.mismatch_count > 0) {
            context.root_state.outcome.set(exit_mismatch, "reading back phase " + phase.id + " found " +
                                                              std::to_string(result.totals.mismatch_count) +
                                                              " wrong operations; the first is named in the record");
        }
    }
    return result.stop_reason == 0;
}

}  // namespace sonde::phases
