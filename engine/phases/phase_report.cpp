// SPDX-License-Identifier: Apache-2.0
// What is said about a phase when it is over, and what later phases must remember of it.
#include "files/segments.hpp"
#include "phases/phase_run.hpp"
#include "phases/tree_jobs.hpp"
#include "records/errno_name.hpp"
#include "records/text.hpp"
#include "results/summary.hpp"
#include "results/tables.hpp"
#include "results/tree_report.hpp"
#include "results/validity.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <map>

namespace sonde::phases {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// What to do about an error, where there is something to say that its name does not.
std::string advice(int code, const plan::Io& io) {
    switch (code) {
        case EIO:
        case EREMOTEIO:
            return "; the kernel's log on that host (dmesg) and the servers' logs say more";
        case EFBIG:
            return "; `ulimit -f` or the file system limits the size of a file";
        case EDQUOT:
            return "; the quota of this user or project is used up";
        case EMFILE:
            return "; `ulimit -n` limits the open files of a process";
        case EINVAL:
            return io.direct ? "; does this file system support direct I/O with this alignment? Try io.direct = false"
                             : "";
        default:
            return {};
    }
}

}  // namespace

json PhaseRun::gather_errors() {
    json mine = json::array();
    ranks::NodeControl& control = context_.team.control();
    if (context_.team.place().leader()) {
        for (ranks::ErrorSlot& slot : control.errors) {
            if (slot.state.load() == 2) {
                mine.push_back({{"phase", phase_.id},
                                {"task", slot.task},
                                {"node", context_.team.place().node},
                                {"host", records::json_text(context_.team.place().host)},
                                {"path", records::json_text(slot.path)},
                                {"offset", slot.offset},
                                {"what", slot.what},
                                {"errno", slot.code},
                                {"detail", records::json_text(slot.text)},
                                {"phase_s", static_cast<double>(slot.at_ns) / 1e9}});
            }
        }
    }
    const std::string all = context_.team.reduce(mine.dump(), [](const std::string& a, const std::string& b) {
        json joined = json::parse(a);
        const json more = json::parse(b);
        joined.insert(joined.end(), more.begin(), more.end());
        return joined.dump();
    });
    return context_.root() ? json::parse(all) : json::array();
}

void PhaseRun::say_errors(const json& errors) {
    for (const json& error : errors) {
        ordered_json line(error);
        const int code = error.at("errno");
        const std::string where =
            "task " + std::to_string(error.at("task").get<int>()) + " on " + error.at("host").get<std::string>();
        std::string sentence;
        if (error.at("what") == "verify") {
            sentence = where + ": " + error.at("path").get<std::string>() + " at offset " +
                       std::to_string(error.at("offset").get<std::uint64_t>()) + " holds " +
                       error.at("detail").get<std::string>();
        } else if (code == 0) {
            sentence = where + ": " + error.at("detail").get<std::string>();
            context_.outcome.set(exit_failed, "failed", "phase " + phase_.id + ": " + sentence);
        } else {
            line["name"] = records::errno_name(code);
            sentence = where + ": " + error.at("what").get<std::string>() + " of " +
                       error.at("path").get<std::string>() +
                       (phase_.meta ? std::string()
                                    : " at offset " + std::to_string(error.at("offset").get<std::uint64_t>())) +
                       " failed: " +
                       (code == ENODATA ? std::string("the file ends before the data that was expected")
                                        : std::string(std::strerror(code))) +
                       " (" + records::errno_name(code) + ")";
            sentence += advice(code, phase_.data.io);
            context_.outcome.set(exit_failed, "failed", "phase " + phase_.id + ": " + sentence);
        }
        line["text"] = sentence;
        line.erase("detail");
        context_.record->line("error", line);
    }
}

std::string PhaseRun::stop_word(const results::Totals& totals) const {
    if (stop_ == ranks::NodeControl::quit_interrupt) {
        return "interrupt";
    }
    if (stop_ == ranks::NodeControl::quit_time_limit) {
        return "time_limit";
    }
    if (stop_ != 0) {
        return "error";
    }
    if (phase_.stop.time) {
        return "time";
    }
    if (totals.walls > 0) {
        return "stonewall";
    }
    const std::uint64_t done = totals.operations[0] + totals.operations[1] + totals.file_operations;
    return phase_.stop.first_done && done < totals.planned_operations ? "first_done" : "volume";
}

void PhaseRun::say(const results::Totals& totals) {
    results::PhaseFacts facts;
    facts.stopped_by = stop_word(totals);
    facts.stonewall_ns = phase_.stop.stonewall.value_or(0);
    facts.hosts = context_.hosts;
    facts.resident = residency_.known ? residency_.share() : -1;
    records::Writer& record = *context_.record;
    ordered_json end = results::phase_end_line(totals, facts);
    end["measured"] = phase_.measured;
    if (const std::optional<results::Droop> droop = phase_.meta ? results::droop_of(totals, phase_.op) : std::nullopt) {
        end["droop"] = {{"first_ops_per_s", droop->first}, {"last_ops_per_s", droop->last}, {"ratio", droop->ratio()}};
    }
    if (phase_.op == plan::Op::walk) {
        end["walk"] = {{"directories", totals.directories}, {"looked_at", totals.looked_at}};
        if (phase_.meta->find) {
            end["walk"]["matched"] = totals.matched;
        }
    }
    end["tasks"] = context_.tasks.tasks();
    if (phase_.op == plan::Op::duplex && end.contains("lanes")) {
        double sum = 0, least = 1e300, most = 0;
        for (std::size_t i = 0; i < 2; ++i) {
            end["lanes"][i]["id"] = phase_.lanes[i].id;
            end["lanes"][i]["op"] = phase_.lanes[i].write ? "write" : "read";
            const double rate = end["lanes"][i].value("bytes_per_s", 0.0);
            sum += rate;
            least = std::min(least, rate);
            most = std::max(most, rate);
        }
        if (most > 0) {
            end["duplex"] = {{"bytes_per_s", sum}, {"fairness", least / most}};
            if (half_.write > 0 && half_.read > 0) {
                end["duplex"]["efficiency"] = sum / (half_.write + half_.read);
            }
        }
    }
    record.line("phase_end", tagged(end));
    record.line("series", tagged(results::series_line(totals)));
    for (const ordered_json& line : results::histogram_lines(totals)) {
        record.line("histogram", tagged(line));
    }
    record.line("nodes", tagged(results::node_line(totals, facts)));
    for (const ordered_json& line : results::task_lines(totals, facts)) {
        record.line("tasks", tagged(line));
    }
    if (facts.stopped_by == "error" || facts.stopped_by == "interrupt" || !phase_.measured) {
        return;
    }
    results::Circumstances about;
    about.phase = &phase_;
    about.backend = phase_.data.backend;
    about.stores_data = backend_.traits.stores_data && backend_.traits.needs_files;
    about.memory_backed = context_.memory_backed;
    about.tasks = context_.tasks.tasks();
    about.tasks_per_node = context_.tasks.tasks_on(0);
    about.cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    about.node_memory = context_.node_memory;
    about.nodes = context_.team.place().nodes;
    about.resident = residency_.share();
    about.resident_known = residency_.known;
    about.clock_drift_ns = drift_ns_;
    about.clock_error_ns = context_.team.clock_error_ns();
    about.other_cpu_s = other_cpu_;
    about.verify_asked = plan::reads(phase_.op) && !plan::writes(phase_.op) &&
                         (phase_.data.verify == plan::Verify::on_read || phase_.data.verify == plan::Verify::both);
    const bool durable = phase_.data.io.direct || phase_.data.io.fsync != plan::Fsync::none;
    if (plan::writes(phase_.op) && durable && backend_.traits.needs_files && facts.stopped_by == "volume") {
        for (int task = 0; task < std::min(16, context_.tasks.tasks()); ++task) {
            struct stat info {};
            if (::stat(map_.path(task, 0).c_str(), &info) == 0 && phase_.data.access.gap == 0 &&
                phase_.data.access.order != plan::Order::stride &&
                phase_.data.access.order != plan::Order::random_replace) {
                about.disk_bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
                about.file_bytes += static_cast<std::uint64_t>(info.st_size);
            }
        }
    }
    about.file_system = context_.file_system;
    for (std::size_t i = 0; i < index_; ++i) {
        const plan::Op op = context_.plan.phases[i].op;
        if (op == plan::Op::remove_items || op == plan::Op::remove) {
            about.removed_before = context_.plan.phases[i].id;
        }
    }
    for (const ordered_json& finding :
         phase_.meta ? results::findings_of_tree(totals, about) : std::vector<ordered_json>{}) {
        record.line("finding", finding);
    }
    for (const ordered_json& finding : results::findings_of(totals, facts, about)) {
        record.line("finding", finding);
    }
    say_notes();
    const auto rates = results::rates_of(totals, facts);
    if (const auto rate = rates.find("transfer"); rate != rates.end()) {
        const double value = static_cast<double>(rate->second.bytes) / rate->second.seconds;
        (plan::writes(phase_.op) ? half_.write : half_.read) =
            phase_.op == plan::Op::duplex || phase_.op == plan::Op::mixed
                ? (plan::writes(phase_.op) ? half_.write : half_.read)
                : value;
    }
}

/// What the backend did without, as the root's own tasks saw it.
void PhaseRun::say_notes() {
    std::map<std::string, int> notes;
    for (const auto& stream : streams_) {
        for (const std::string& note : stream->notes()) {
            ++notes[note];
        }
    }
    for (const auto& [note, count] : notes) {
        context_.record->line("finding", {{"id", "backend"},
                                          {"phase", phase_.id},
                                          {"severity", "info"},
                                          {"text", note},
                                          {"evidence", {{"tasks", count}}}});
    }
}

/// What later phases must know about the data.
void PhaseRun::remember(const results::Totals& totals) {
    if (phase_.meta) {
        remember_tree(phase_, index_, context_.tasks, totals, context_.manifest.trees);
    } else if (phase_.op == plan::Op::remove) {
        context_.manifest.data.forget(phase_.data.files.suffix);
    } else if (plan::writes(phase_.op)) {
        files::DataState state;
        state.phase = phase_.id;
        state.generation = index_ + 1;
        state.access = phase_.data.access;
        state.segments = files::segments_of(phase_, context_.tasks, context_.node_memory);
        state.suffix = phase_.data.files.suffix;
        state.files = phase_.files;
        state.exact = phase_.op != plan::Op::mixed && phase_.data.access.order != plan::Order::random_replace;
        state.extends = phase_.op != plan::Op::mixed;
        state.fresh = phase_.op == plan::Op::write && phase_.open != plan::Open::overwrite;
        state.operations.assign(static_cast<std::size_t>(context_.tasks.tasks()), 0);
        int writing_lane = 0;
        if (phase_.op == plan::Op::duplex) {
            writing_lane = phase_.lanes[0].write ? 0 : 1;
            state.files = {phase_.lanes[static_cast<std::size_t>(writing_lane)].file};
        }
        for (const results::TaskRow& row : totals.rows) {
            if (row.lane != writing_lane) {
                continue;
            }
            state.operations[static_cast<std::size_t>(row.task)] =
                std::max(state.operations[static_cast<std::size_t>(row.task)], row.next_operation);
        }
        context_.manifest.data.add(state);
    }
    const std::string text = context_.team.broadcast(
        context_.root()
            ? json::array({context_.manifest.data.to_json(), context_.manifest.trees.states_to_json()}).dump()
            : std::string());
    if (!context_.root()) {
        const json both = json::parse(text);
        context_.manifest.data = files::Dataset::from_json(both.at(0));
        context_.manifest.trees.take_states(both.at(1), context_.tasks.all());
    }
}

/// Says what happened; false when the run is to end.
bool PhaseRun::conclude() {
    const json errors = gather_errors();
    if (context_.root()) {
        say(totals_);
        say_errors(errors);
        if (totals_.mismatches > 0) {
            context_.outcome.set(exit_mismatch, "mismatch",
                                 "phase " + phase_.id + ": verification found " + std::to_string(totals_.mismatches) +
                                     " wrong operations; the first is named in the record");
        }
        if (stop_ == ranks::NodeControl::quit_interrupt) {
            context_.outcome.set(exit_interrupted, "interrupted",
                                 "interrupted in phase " + phase_.id + "; finished phases are kept");
        } else if (stop_ == ranks::NodeControl::quit_time_limit) {
            context_.outcome.set(exit_interrupted, "interrupted",
                                 "the time limit of the run ended phase " + phase_.id + "; finished phases are kept");
        } else if (stop_ == ranks::NodeControl::quit_peer_lost) {
            context_.outcome.set(exit_failed, "failed", lost_sentence(context_, "in phase " + phase_.id));
        } else if (stop_ != 0) {
            context_.outcome.set(exit_failed, "failed", "phase " + phase_.id + " failed");
        }
    }
    if (stop_ == ranks::NodeControl::quit_peer_lost) {
        return false;
    }
    remember(totals_);
    if (phase_.meta && stop_ == 0) {
        finish_tree(context_, index_);
    }
    return stop_ == 0 && context_.team.all(save_manifest());
}

/// Only a later stage needs what was added since the start: the names in the first manifest are enough for `clean`. So
/// a full file system, the end of many a run, is no reason to fail here. False when the run must end.
bool PhaseRun::save_manifest() {
    if (!context_.root() || !context_.makes_files || context_.in_place()) {
        return true;
    }
    if (phase_.meta && (context_.options.stage < 0 || context_.options.stage == stages_of(context_.plan).back())) {
        return true;  // hundreds of short phases need not sync a file each
    }
    try {
        context_.manifest.save(context_.directory);
        return true;
    } catch (const files::NoSpace&) {
        if (context_.options.stage < 0 || context_.options.stage == stages_of(context_.plan).back()) {
            return true;
        }
        context_.outcome.set(
            exit_failed, "failed",
            "phase " + phase_.id + " is done, but " + context_.directory +
                " has no space left for the manifest that the next stage needs: make the volume smaller");
    } catch (const std::exception& error) {
        context_.outcome.set(exit_failed, "failed", "phase " + phase_.id + " is done, but " + error.what());
    }
    return false;
}

}  // namespace sonde::phases
