// SPDX-License-Identifier: Apache-2.0
// Verification after the write: a phase of its own that reads what the phase wrote.
#include "phases/phase_run.hpp"

namespace sonde::phases {

using nlohmann::json;
using nlohmann::ordered_json;

/// verify = "readback": everything that was written is read again by another task, untimed.
bool PhaseRun::read_back() {
    const bool asked = phase_.data.verify == plan::Verify::readback || phase_.data.verify == plan::Verify::both;
    const bool items = phase_.meta && phase_.op == plan::Op::create && phase_.meta->write > 0;
    if (!asked || (phase_.op != plan::Op::write && phase_.op != plan::Op::rewrite && !items)) {
        return true;
    }
    plan::Phase reading = phase_;
    reading.op = plan::Op::read;
    reading.data_of = phase_.id;
    reading.data.verify = plan::Verify::on_read;
    reading.data.io.fsync = plan::Fsync::none;
    reading.stop = {};
    reading.before.clear();
    reading.barrier = plan::Barrier::phase;
    if (!reading.data.io.collective && !reading.data.io.view) {
        reading.shift = {context_.team.place().nodes > 1 ? plan::ShiftBy::nodes : plan::ShiftBy::tasks, 1, 1};
    }
    if (items) {
        reading.op = plan::Op::read_items;
        reading.meta->read = reading.meta->write;
        reading.meta->order = plan::SelectOrder::creation;
        reading.meta->sync = false;
    }
    plan::Plan shadow = context_.plan;
    shadow.phases[index_] = reading;
    Context verification{shadow,
                         context_.options,
                         context_.team,
                         context_.tasks,
                         context_.directory,
                         context_.node_memory,
                         context_.board,
                         context_.record,
                         context_.hosts,
                         context_.manifest,
                         {},
                         context_.memory_backed,
                         context_.makes_files,
                         context_.file_system,
                         context_.walk};
    HalfRates none;
    PhaseRun check(verification, index_, none);
    check.reset();
    if (!check.set_up(true) || !check.time_it()) {
        context_.outcome = verification.outcome;
        return false;
    }
    check.collect();
    const json errors = check.gather_errors();
    if (context_.root()) {
        check.say_errors(errors);
        context_.record->line("verification",
                              tagged({{"checked_bytes", check.totals_.checked_bytes},
                                      {"mismatches", check.totals_.mismatches},
                                      {"seconds", static_cast<double>(check.totals_.verify_ns) / 1e9}}));
        if (verification.outcome.code != exit_done) {
            context_.outcome.set(verification.outcome.code, verification.outcome.status, verification.outcome.text);
        }
        if (check.totals_.mismatches > 0) {
            context_.outcome.set(exit_mismatch, "mismatch",
                                 "reading back phase " + phase_.id + " found " +
                                     std::to_string(check.totals_.mismatches) +
                                     " wrong operations; the first is named in the record");
        }
    }
    return check.stop_ == 0;
}

}  // namespace sonde::phases
