// SPDX-License-Identifier: Apache-2.0
#include "runs/run.hpp"

#include "phases/gather.hpp"
#include "phases/phase.hpp"
#include "phases/stages.hpp"
#include "plan/plan_error.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/inspection.hpp"
#include "runs/monitor.hpp"
#include "runs/run_end.hpp"

#include <sys/mman.h>
#include <sys/time.h>
#include <algorithm>
#include <cstring>

namespace sonde::runs {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Gathers facts about every node at the root.
json gather_nodes(ranks::Team& team, const std::string& directory) {
    json own_nodes = json::array();
    if (team.location().is_leader()) {
        json node = records::describe_node(directory);
        node["node"] = team.location().node;
        node["clock_offset_ns"] = team.clock_offset_ns();
        node["clock_error_ns"] = team.clock_error_ns();
        own_nodes.push_back(node);
    }
    return phases::gather_list(team, own_nodes);
}

void write_run_line(const phases::RunContext& context, const std::string& started) {
    const ranks::ProcessLocation& location = context.team.location();
    ordered_json line{{"schema", "sonde-record/2"},
                      {"id", context.options.run_id},
                      {"engine", records::engine_version()},
                      {"started", started},
                      {"command", records::json_text(context.options.command)},
                      {"launch", context.team.description()},
                      {"tasks", context.tasks.tasks()},
                      {"processes", location.processes},
                      {"threads", context.tasks.threads},
                      {"nodes", location.nodes},
                      {"clock", context.shared.board->clock.source()},
                      {"directory", records::json_text(context.storage.directory)}};
    if (context.options.stage >= 0) {
        line["stage"] = context.options.stage;
    }
    line["plan"] = ordered_json::parse(context.plan.canonical);
    context.root_state.record->line("run", line);
}

void arm_time_limit(const plan::Plan& plan) {
    itimerval timer{};  // zero disarms the timer of an earlier plan
    if (plan.time_limit) {
        timer.it_value.tv_sec = *plan.time_limit / 1'000'000'000;
        timer.it_value.tv_usec = *plan.time_limit % 1'000'000'000 / 1000 + 1;
    }
    setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Zeroed shared memory for the board; reuses that of the previous run when it is large enough.
std::byte* reuse_board_memory(const phases::RunContext& context, std::size_t bytes) {
    phases::SharedArena once;
    phases::SharedArena& ground = context.options.arena != nullptr ? *context.options.arena : once;
    if (ground.bytes < bytes) {
        ground = {context.team.allocate_shared(bytes), bytes};
    } else if (ground.bytes > 0 && context.team.location().is_leader() &&
               madvise(ground.memory, ground.bytes, MADV_REMOVE) != 0) {
        std::memset(ground.memory, 0, ground.bytes);  // the arena is not on tmpfs
    }
    return ground.memory;
}

/// Whether the plan skips this phase now. All processes call it.
bool should_skip_phase(const phases::RunContext& context, const plan::Phase& phase, std::int64_t begin_ns) {
    if (phase.unless_mismatch &&
        context.team.reduce_maximum(
            context.is_root() && context.root_state.outcome.code == phases::exit_mismatch ? 1 : 0) != 0) {
        return true;
    }
    if (!context.plan.begin_limit || plan::on_files(phase.op)) {
        return false;
    }
    const bool late = context.is_root() && meters::Clock::monotonic_ns() - begin_ns >= *context.plan.begin_limit;
    if (context.team.reduce_maximum(late ? 1 : 0) == 0) {
        return false;
    }
    if (context.is_root()) {
        context.root_state.record->line(
            "finding",
            {{"id", "not_begun"},
             {"phase", phase.id},
             {"severity", "info"},
             {"text", "phase " + phase.id + " was not begun: the run had lasted longer than limits.begin allows"}});
    }
    return true;
}

void run_phases(phases::RunContext& context, const std::vector<int>& stage) {
    const std::int64_t begin_ns = meters::Clock::monotonic_ns();
    // from an earlier stage, at the root
    results::DirectionRates direction_rates{.write = context.manifest.half_write, .read = context.manifest.half_read};
    for (std::size_t i = 0; i < context.plan.phases.size(); ++i) {
        if (context.options.stage >= 0 && stage[i] != context.options.stage) {
            continue;
        }
        if (context.team.reduce_maximum(context.team.control().stop.load()) != 0) {
            if (context.is_root()) {
                const bool limit = context.team.control().stop.load() == ranks::NodeControl::quit_time_limit;
                context.root_state.outcome.set(
                    phases::exit_interrupted,
                    (limit ? std::string("the time limit of the run ended it") : std::string("interrupted")) +
                        " before phase " + context.plan.phases[i].id + "; finished phases are kept");
            }
            return;
        }
        if (should_skip_phase(context, context.plan.phases[i], begin_ns)) {
            continue;
        }
        context.phases_begun = i + 1;
        if (!phases::run_phase(context, i, direction_rates)) {
            return;
        }
    }
}

/// The root opens the record and inspects the target; all processes receive the facts. With a member "error" the run
/// does not begin.
json open_record_and_inspect(phases::RunContext& context, std::unique_ptr<records::Writer>& writer,
                             std::int64_t& epoch) {
    json facts;
    if (context.is_root()) {
        try {
            writer = std::make_unique<records::Writer>(context.options.record, epoch);
            writer->tell(context.options.listener);
            plan::Bytes largest = 1;
            for (const plan::Phase& phase : context.plan.phases) {
                largest = std::max(largest, phase.data.access.transfer);
            }
            context.manifest.period = payload::period_for(context.plan.phases.front().data.payload, largest);
            context.manifest.epoch_ns = epoch;
            facts = inspect_target(context, std::max(0, context.options.stage));
            epoch = context.manifest.epoch_ns;
            writer->set_epoch(epoch);
        } catch (const plan::PlanError& error) {
            facts = {{"error", error.what()}, {"code", phases::exit_plan}};
        } catch (const std::exception& error) {
            facts = {{"error", error.what()}, {"code", phases::exit_environment}};
        }
    }
    context.root_state.record = writer.get();
    return json::parse(context.team.broadcast(
        context.is_root() ? facts.dump(-1, ' ', false, json::error_handler_t::replace) : std::string()));
}

/// Ends a run that did not begin. Returns the exit code.
int end_before_start(const phases::RunContext& context, const json& facts, std::int64_t epoch) {
    if (context.is_root()) {
        records::print_error(facts.at("error").get<std::string>());
        if (context.root_state.record != nullptr && context.options.stage > 0) {
            context.root_state.record->line("end", failed_end_line(facts.at("code"), facts.at("error"), epoch));
        } else if (context.root_state.record != nullptr) {
            context.root_state.record->discard();  // nothing to record
        }
    }
    return facts.at("code");
}

/// Copies the root's facts and the state of earlier stages to all processes.
void adopt_root_state(phases::RunContext& context, const json& facts) {
    context.storage.makes_files = facts.at("files");
    context.storage.memory_backed = facts.at("memory_backed");
    context.storage.file_system = facts.value("file_system", std::string());
    context.storage.full_stripe = facts.value("full_stripe", plan::Bytes{0});
    context.storage.stripes_files = facts.value("stripes_files", false);
    context.storage.directory = facts.at("directory");
    files::Manifest& manifest = context.manifest;
    const json common = json::parse(context.team.broadcast(
        context.is_root()
            ? json{{"period", manifest.period}, {"data", manifest.data.to_json()}, {"trees", manifest.trees.to_json()}}
                  .dump()
            : std::string()));
    manifest.period = common.at("period");
    manifest.data = files::Dataset::from_json(common.at("data"));
    manifest.files = context.plan.data.files;
    manifest.tasks = context.tasks;
    manifest.has_data = context.plan.has_data;
    if (!context.is_root()) {
        manifest.trees = files::Forest::from_json(common.at("trees"), context.tasks.all());
    }
}

/// One sentence about a node that sees another target than the root; empty = all see the same. The text is valid at the
/// root; elsewhere only whether it is empty.
std::string find_node_without_target(const phases::RunContext& context) {
    std::string complaint;
    if (context.team.location().nodes > 1 && context.storage.makes_files) {
        const std::string own_nodes =
            context.team.location().is_leader() && !context.is_root() ? explain_unseen_target(context) : std::string();
        complaint = context.team.reduce_text(
            own_nodes, [](const std::string& a, const std::string& b) { return a.empty() ? b : a; });
        const bool somewhere = context.team.reduce_maximum(context.is_root() && !complaint.empty() ? 1 : 0) != 0;
        complaint = somewhere && complaint.empty() ? "another node" : complaint;
    }
    return complaint;
}

/// Allocates the shared memory for the counters of a node.
void allocate_board(phases::RunContext& context) {
    const plan::Plan& plan = context.plan;
    const bool has_duplex =
        std::any_of(plan.phases.begin(), plan.phases.end(), [](const auto& p) { return p.op == plan::Op::duplex; });
    const int streams = context.team.location().local_count * context.tasks.threads * (has_duplex ? 2 : 1);
    context.shared.board = reinterpret_cast<phases::ProgressBoard*>(
        reuse_board_memory(context, phases::ProgressBoard::bytes_for(streams, plan.observe.max_slices)));
    if (context.team.location().is_leader()) {
        new (context.shared.board) phases::ProgressBoard;
        context.shared.board->max_slices = plan.observe.max_slices;
        context.shared.board->clock = meters::Clock::calibrate();
    }
    context.team.all_ok(true);
    context.team.register_progress(reinterpret_cast<const std::byte*>(&context.shared.board->meter(0).live),
                                   meters::StreamMeter::bytes_for(plan.observe.max_slices),
                                   &context.shared.board->streams);
}

/// Writes the head of the record and starts the monitor (root; null elsewhere).
std::unique_ptr<Monitor> write_record_head(phases::RunContext& context, const std::string& started,
                                           std::int64_t epoch) {
    const json nodes =
        gather_nodes(context.team, context.storage.makes_files ? context.storage.directory : std::string("/"));
    if (!context.is_root()) {
        return nullptr;
    }
    write_run_line(context, started);
    for (const json& node : nodes) {
        context.root_state.hosts.push_back(records::from_json_text(node.value("host", std::string())));
        context.root_state.record->line("node", ordered_json(node));
    }
    std::vector<std::string> ids;
    for (const plan::Phase& phase : context.plan.phases) {
        ids.push_back(phase.id);
    }
    context.root_state.record->share_record(&context.shared.board->turns, records::Writer::Role::engine);
    return std::make_unique<Monitor>(*context.shared.board, context.team, context.options.record, epoch,
                                     context.plan.observe.progress, ids);
}

/// Removes files, ends the record, and prints the outcome. Returns the exit code, equal in all processes.
int finish_run(phases::RunContext& context, bool last_stage, std::unique_ptr<Monitor> monitor, std::int64_t epoch) {
    const bool lost = !context.team.all_ok(true);
    phases::Outcome& outcome = context.root_state.outcome;
    files::Removal removal;
    const std::string verdict =
        lost ? std::string() : context.team.broadcast(context.is_root() ? std::to_string(outcome.code) : std::string());
    const int code = lost ? phases::exit_failed : std::stoi(verdict);
    // Later stages start only after success, so a failed stage removes the files.
    const bool ends_here = last_stage || code != phases::exit_done;
    if (ends_here && !lost) {
        removal = remove_run_files(context, code);
    }
    if (!context.is_root()) {
        return code;
    }
    if (lost) {
        removal = remove_without_team(context);
        outcome.set(phases::exit_failed, phases::describe_lost_process(context, "at the end of the run"));
    }
    const plan::TargetSettings& target = context.plan.target;
    // An unfinished run keeps its manifest for `clean`, unless the plan creates no files.
    const bool left_by_us = code != phases::exit_done && creates_files(context.plan);
    if (!left_by_us && ends_here && last_stage && context.storage.makes_files && target.keep && !target.keep_manifest) {
        files::Manifest::remove(context.open_directory());
    }
    context.shared.board->finished.store(1);
    if (ends_here) {
        context.root_state.record->line("end", end_line(outcome, removal, epoch));
    }
    monitor.reset();
    const std::string trouble = context.root_state.record->trouble();
    print_outcome(outcome, removal, trouble);
    return outcome.code == phases::exit_done && !trouble.empty() ? phases::exit_environment : outcome.code;
}

}  // namespace

int execute_run(const plan::Plan& plan, const phases::RunOptions& options, ranks::Team& team) {
    std::int64_t epoch = meters::Clock::monotonic_ns();
    const std::string started = records::format_utc_now();
    const std::vector<int> stages = phases::number_stages(plan);
    phases::RunContext context{.plan = plan,
                               .options = options,
                               .team = team,
                               .tasks = {plan.tasks.threads, team.location().node_of, plan.tasks.used},
                               .node_memory = team.reduce_maximum(records::read_node_memory())};
    arm_time_limit(plan);
    const int used = context.tasks.tasks();
    team.set_active_processes((used + plan.tasks.threads - 1) / plan.tasks.threads);

    std::unique_ptr<records::Writer> writer;
    const json facts = open_record_and_inspect(context, writer, epoch);
    if (facts.contains("error")) {
        return end_before_start(context, facts, epoch);
    }
    adopt_root_state(context, facts);
    if (const std::string complaint = find_node_without_target(context); !complaint.empty()) {
        if (context.is_root()) {
            remove_without_team(context);
        }
        return end_before_start(context, {{"error", complaint}, {"code", phases::exit_environment}}, epoch);
    }
    allocate_board(context);
    std::unique_ptr<Monitor> monitor = write_record_head(context, started, epoch);
    try {
        run_phases(context, stages);
    } catch (const std::exception& error) {
        if (context.is_root()) {
            remove_without_team(context);
            context.shared.board->finished.store(1);
            writer->line("end", failed_end_line(phases::exit_environment, error.what(), epoch));
        }
        throw;  // the destructor of the team notifies the other processes
    }
    return finish_run(context, phases::is_last_stage(plan, options.stage), std::move(monitor), epoch);
}

}  // namespace sonde::runs
