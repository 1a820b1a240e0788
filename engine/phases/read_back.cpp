// SPDX-License-Identifier: Apache-2.0
#include "phases/read_back.hpp"

#include "files/file_map.hpp"
#include "phases/errors.hpp"
#include "phases/phase_line.hpp"
#include "phases/timed_part.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sonde::phases {
namespace {

/// The phase that reads what `phase` has written; none when that is not asked for.
std::optional<plan::Phase> reading_of(const plan::Phase& phase, int nodes) {
    const bool asked = phase.data.verify == plan::Verify::readback || phase.data.verify == plan::Verify::both;
    const bool items = phase.meta && phase.op == plan::Op::create && phase.meta->write > 0;
    if (!asked || (phase.op != plan::Op::write && phase.op != plan::Op::rewrite && !items)) {
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
        reading.meta->read = reading.meta->write;
        reading.meta->order = plan::SelectOrder::creation;
        reading.meta->sync = false;
    }
    return reading;
}

}  // namespace

bool read_back(Context& context, std::size_t index) {
    const plan::Phase& phase = context.plan.phases[index];
    const std::optional<plan::Phase> reading = reading_of(phase, context.team.place().nodes);
    if (!reading) {
        return true;
    }
    plan::Plan shadow = context.plan;
    shadow.phases[index] = *reading;
    Context verification{.plan = shadow,
                         .options = context.options,
                         .team = context.team,
                         .tasks = context.tasks,
                         .node_memory = context.node_memory,
                         .storage = context.storage,
                         .shared = context.shared,
                         .at_root = {.record = context.at_root.record, .hosts = context.at_root.hosts, .outcome = {}},
                         .manifest = context.manifest};
    const files::FileMap map(context.storage.directory, reading->data.files, context.tasks);
    TimedPart check(verification, index, map);
    begin_counting(context.team);
    if (!check.set_up(true) || !check.run()) {
        context.at_root.outcome = verification.at_root.outcome;
        return false;
    }
    const Measured measured = check.collect();
    const nlohmann::json errors = gather_errors(verification, *reading);
    if (context.root()) {
        write_errors(verification, *reading, errors);
        context.at_root.record->line("verification",
                                     of_phase(phase, index,
                                              {{"checked_bytes", measured.totals.checked_bytes},
                                               {"mismatches", measured.totals.mismatches},
                                               {"seconds", static_cast<double>(measured.totals.verify_ns) / 1e9}}));
        const Outcome& found = verification.at_root.outcome;
        if (found.code != exit_done) {
            context.at_root.outcome.set(found.code, found.text);
        }
        if (measured.totals.mismatches > 0) {
            context.at_root.outcome.set(exit_mismatch, "reading back phase " + phase.id + " found " +
                                                           std::to_string(measured.totals.mismatches) +
                                                           " wrong operations; the first is named in the record");
        }
    }
    return measured.stop == 0;
}

}  // namespace sonde::phases
