// SPDX-License-Identifier: Apache-2.0
#include "runs/run.hpp"

#include "phases/gather.hpp"
#include "phases/phase.hpp"
#include "phases/stages.hpp"
#include "plan/overlay.hpp"
#include "plan/parse.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/ending.hpp"
#include "runs/inspect.hpp"
#include "runs/monitor.hpp"

#include <sys/mman.h>
#include <sys/time.h>
#include <algorithm>
#include <cstring>

namespace sonde::runs {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Facts about every node, gathered at the root.
json gather_nodes(ranks::Team& team, const std::string& directory) {
    json mine = json::array();
    if (team.place().leader()) {
        json node = records::describe_node(directory);
        node["node"] = team.place().node;
        node["clock_offset_ns"] = team.clock_offset_ns();
        node["clock_error_ns"] = team.clock_error_ns();
        mine.push_back(node);
    }
    return phases::gather(team, mine);
}

void write_run_line(const phases::Context& context, const std::string& started) {
    const ranks::Place& place = context.team.place();
    ordered_json line{{"schema", "sonde-record/1"},
                      {"id", context.options.run_id},
                      {"engine", records::engine_version()},
                      {"started", started},
                      {"command", records::json_text(context.options.command)},
                      {"launch", context.team.description()},
                      {"tasks", context.tasks.tasks()},
                      {"processes", place.processes},
                      {"threads", context.tasks.threads},
                      {"nodes", place.nodes},
                      {"clock", context.shared.board->clock.source()},
                      {"directory", records::json_text(context.storage.directory)}};
    if (context.options.stage >= 0) {
        line["stage"] = context.options.stage;
    }
    line["overlay"] = plan::overlay_rule;
    line["plan"] = ordered_json::parse(context.plan.canonical);
    context.at_root.record->line("run", line);
}

void arm_time_limit(const plan::Plan& plan) {
    itimerval timer{};  // zero: disarmed, as after a plan before that had a limit
    if (plan.time_limit) {
        timer.it_value.tv_sec = *plan.time_limit / 1'000'000'000;
        timer.it_value.tv_usec = *plan.time_limit % 1'000'000'000 / 1000 + 1;
    }
    setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Shared memory for the board, zeroed: that of the run before when there is enough of it.
std::byte* board_memory(const phases::Context& context, std::size_t bytes) {
    phases::Ground once;
    phases::Ground& ground = context.options.ground != nullptr ? *context.options.ground : once;
    if (ground.bytes < bytes) {
        ground = {context.team.shared(bytes), bytes};
    } else if (ground.bytes > 0 && context.team.place().leader() &&
               madvise(ground.memory, ground.bytes, MADV_REMOVE) != 0) {
        std::memset(ground.memory, 0, ground.bytes);  // not a file system of memory
    }
    return ground.memory;
}

/// Whether the plan says to leave a phase out as things are. All processes ask.
bool left_out(const phases::Context& context, const plan::Phase& phase, std::int64_t begin_ns) {
    if (phase.unless_mismatch &&
        context.team.maximum(context.root() && context.at_root.outcome.code == phases::exit_mismatch ? 1 : 0) != 0) {
        return true;
    }
    if (!context.plan.begin_limit || plan::on_files(phase.op)) {
        return false;
    }
    const bool late = context.root() && meters::Clock::monotonic_ns() - begin_ns >= *context.plan.begin_limit;
    if (context.team.maximum(late ? 1 : 0) == 0) {
        return false;
    }
    if (context.root()) {
        context.at_root.record->line(
            "finding",
            {{"id", "not_begun"},
             {"phase", phase.id},
             {"severity", "info"},
             {"text", "phase " + phase.id + " was not begun: the run had lasted longer than limits.begin allows"}});
    }
    return true;
}

void run_phases(phases::Context& context, const std::vector<int>& stage) {
    const std::int64_t begin_ns = meters::Clock::monotonic_ns();
    // of an earlier stage, at the root
    results::HalfRates half{.write = context.manifest.half_write, .read = context.manifest.half_read};
    for (std::size_t i = 0; i < context.plan.phases.size(); ++i) {
        if (context.options.stage >= 0 && stage[i] != context.options.stage) {
            continue;
        }
        if (context.team.maximum(context.team.control().stop.load()) != 0) {
            if (context.root()) {
                const bool limit = context.team.control().stop.load() == ranks::NodeControl::quit_time_limit;
                context.at_root.outcome.set(
                    phases::exit_interrupted,
                    (limit ? std::string("the time limit of the run ended it") : std::string("interrupted")) +
                        " before phase " + context.plan.phases[i].id + "; finished phases are kept");
            }
            return;
        }
        if (left_out(context, context.plan.phases[i], begin_ns)) {
            continue;
        }
        context.begun = i + 1;
        if (!phases::run_phase(context, i, half)) {
            return;
        }
    }
}

/// The root looks around and opens the record; all learn what it found. With a member "error" nothing is begun.
json find_out(phases::Context& context, std::unique_ptr<records::Writer>& writer, std::int64_t& epoch) {
    json facts;
    if (context.root()) {
        try {
            writer = std::make_unique<records::Writer>(context.options.record, epoch);
            writer->tell(context.options.listener);
            plan::Bytes largest = 1;
            for (const plan::Phase& phase : context.plan.phases) {
                largest = std::max(largest, phase.data.access.transfer);
            }
            context.manifest.period = payload::period_for(context.plan.phases.front().data.payload, largest);
            context.manifest.epoch_ns = epoch;
            facts = inspect(context, std::max(0, context.options.stage));
            epoch = context.manifest.epoch_ns;
            writer->set_epoch(epoch);
        } catch (const plan::PlanError& error) {
            facts = {{"error", error.what()}, {"code", phases::exit_plan}};
        } catch (const std::exception& error) {
            facts = {{"error", error.what()}, {"code", phases::exit_environment}};
        }
    }
    context.at_root.record = writer.get();
    return json::parse(context.team.broadcast(
        context.root() ? facts.dump(-1, ' ', false, json::error_handler_t::replace) : std::string()));
}

/// Nothing was begun: the exit code.
int refuse(const phases::Context& context, const json& facts, std::int64_t epoch) {
    if (context.root()) {
        records::complain(facts.at("error").get<std::string>());
        if (context.at_root.record != nullptr && context.options.stage > 0) {
            context.at_root.record->line("end", failed_end(facts.at("code"), facts.at("error"), epoch));
        } else if (context.at_root.record != nullptr) {
            context.at_root.record->discard();  // nothing was begun, so there is nothing to record
        }
    }
    return facts.at("code");
}

/// All processes know what the root found out, and what earlier stages have left.
void take_over(phases::Context& context, const json& facts) {
    context.storage.makes_files = facts.at("files");
    context.storage.memory_backed = facts.at("memory_backed");
    context.storage.file_system = facts.value("file_system", std::string());
    context.storage.full_stripe = facts.value("full_stripe", plan::Bytes{0});
    context.storage.stripes_files = facts.value("stripes_files", false);
    context.storage.directory = facts.at("directory");
    files::Manifest& manifest = context.manifest;
    const json common = json::parse(context.team.broadcast(
        context.root()
            ? json{{"period", manifest.period}, {"data", manifest.data.to_json()}, {"trees", manifest.trees.to_json()}}
                  .dump()
            : std::string()));
    manifest.period = common.at("period");
    manifest.data = files::Dataset::from_json(common.at("data"));
    manifest.files = context.plan.data.files;
    manifest.tasks = context.tasks;
    manifest.has_data = context.plan.has_data;
    if (!context.root()) {
        manifest.trees = files::Forest::from_json(common.at("trees"), context.tasks.all());
    }
}

/// One sentence about a node that does not see the target as the root does; empty: all do. Valid at the root, and as a
/// mere yes or no everywhere.
std::string unseen_target(const phases::Context& context) {
    std::string complaint;
    if (context.team.place().nodes > 1 && context.storage.makes_files) {
        const std::string mine = context.team.place().leader() && !context.root() ? why_unseen(context) : std::string();
        complaint =
            context.team.reduce(mine, [](const std::string& a, const std::string& b) { return a.empty() ? b : a; });
        const bool somewhere = context.team.maximum(context.root() && !complaint.empty() ? 1 : 0) != 0;
        complaint = somewhere && complaint.empty() ? "another node" : complaint;
    }
    return complaint;
}

/// The memory in which all streams of a node count.
void lay_board(phases::Context& context) {
    const plan::Plan& plan = context.plan;
    const bool lanes =
        std::any_of(plan.phases.begin(), plan.phases.end(), [](const auto& p) { return p.op == plan::Op::duplex; });
    const int streams = context.team.place().locals * context.tasks.threads * (lanes ? 2 : 1);
    context.shared.board = reinterpret_cast<phases::Board*>(
        board_memory(context, phases::Board::bytes_for(streams, plan.observe.max_slices)));
    if (context.team.place().leader()) {
        new (context.shared.board) phases::Board;
        context.shared.board->max_slices = plan.observe.max_slices;
        context.shared.board->clock = meters::Clock::calibrate();
    }
    context.team.all(true);
    context.team.count_progress(reinterpret_cast<const std::byte*>(&context.shared.board->meter(0).live),
                                meters::StreamMeter::bytes_for(plan.observe.max_slices),
                                &context.shared.board->streams);
}

/// The head of the record, and who writes progress into it from then on (root; null elsewhere).
std::unique_ptr<Monitor> begin_record(phases::Context& context, const std::string& started, std::int64_t epoch) {
    const json nodes =
        gather_nodes(context.team, context.storage.makes_files ? context.storage.directory : std::string("/"));
    if (!context.root()) {
        return nullptr;
    }
    write_run_line(context, started);
    for (const json& node : nodes) {
        context.at_root.hosts.push_back(records::bytes_of(node.value("host", std::string())));
        context.at_root.record->line("node", ordered_json(node));
    }
    std::vector<std::string> ids;
    for (const plan::Phase& phase : context.plan.phases) {
        ids.push_back(phase.id);
    }
    context.at_root.record->take_turns(&context.shared.board->turns, records::Writer::Role::engine);
    return std::make_unique<Monitor>(*context.shared.board, context.team, context.options.record, epoch,
                                     context.plan.observe.progress, ids);
}

/// Cleans up, ends the record and says what is to be said. The exit code, the same in all processes.
int finish(phases::Context& context, bool last_stage, std::unique_ptr<Monitor> monitor, std::int64_t epoch) {
    const bool lost = !context.team.all(true);
    phases::Outcome& outcome = context.at_root.outcome;
    files::Removal removal;
    const std::string verdict =
        lost ? std::string() : context.team.broadcast(context.root() ? std::to_string(outcome.code) : std::string());
    const int code = lost ? phases::exit_failed : std::stoi(verdict);
    // Later stages are not started after anything but success, so nobody else would remove the files.
    const bool ends_here = last_stage || code != phases::exit_done;
    if (ends_here && !lost) {
        removal = clean_up(context, code);
    }
    if (!context.root()) {
        return code;
    }
    if (lost) {
        removal = remove_alone(context);
        outcome.set(phases::exit_failed, phases::lost_sentence(context, "at the end of the run"));
    }
    const plan::Target& target = context.plan.target;
    // What a run leaves that did not come to its end, `clean` finds by the manifest; one that makes nothing leaves
    // nothing.
    const bool left_by_us = code != phases::exit_done && makes_anything(context.plan);
    if (!left_by_us && ends_here && last_stage && context.storage.makes_files && target.keep && !target.keep_manifest) {
        files::Manifest::remove(context.storage.directory);
    }
    context.shared.board->finished.store(1);
    if (ends_here) {
        context.at_root.record->line("end", end_line(outcome, removal, epoch));
    }
    monitor.reset();
    const std::string trouble = context.at_root.record->trouble();
    speak(outcome, removal, trouble);
    return outcome.code == phases::exit_done && !trouble.empty() ? phases::exit_environment : outcome.code;
}

}  // namespace

int execute(const plan::Plan& plan, const phases::RunOptions& options, ranks::Team& team) {
    std::int64_t epoch = meters::Clock::monotonic_ns();
    const std::string started = records::utc_now();
    const std::vector<int> stages = phases::stages_of(plan);
    phases::Context context{.plan = plan,
                            .options = options,
                            .team = team,
                            .tasks = {plan.tasks.threads, team.place().node_of, plan.tasks.used},
                            .node_memory = team.maximum(records::node_memory_bytes())};
    arm_time_limit(plan);
    const int used = context.tasks.tasks();
    team.take_part((used + plan.tasks.threads - 1) / plan.tasks.threads);

    std::unique_ptr<records::Writer> writer;
    const json facts = find_out(context, writer, epoch);
    if (facts.contains("error")) {
        return refuse(context, facts, epoch);
    }
    take_over(context, facts);
    if (const std::string complaint = unseen_target(context); !complaint.empty()) {
        if (context.root()) {
            remove_alone(context);
        }
        return refuse(context, {{"error", complaint}, {"code", phases::exit_environment}}, epoch);
    }
    lay_board(context);
    std::unique_ptr<Monitor> monitor = begin_record(context, started, epoch);
    try {
        run_phases(context, stages);
    } catch (const std::exception& error) {
        if (context.root()) {
            remove_alone(context);
            context.shared.board->finished.store(1);
            writer->line("end", failed_end(phases::exit_environment, error.what(), epoch));
        }
        throw;  // the end of this process's team tells the others
    }
    return finish(context, phases::is_last_stage(plan, options.stage), std::move(monitor), epoch);
}

}  // namespace sonde::runs
