// SPDX-License-Identifier: Apache-2.0
#include "runs/execute.hpp"

#include "phases/phase.hpp"
#include "phases/stages.hpp"
#include "plan/json_io.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/run_end.hpp"

namespace sonde::runs {
namespace {

using nlohmann::ordered_json;

void write_run_line(const phases::RunContext& context, const RunDescription& description) {
    ordered_json line{{"schema", "sonde-record/2"},
                      {"id", context.options.run_id},
                      {"engine", records::engine_version()},
                      {"started", description.start_date},
                      {"command", records::to_json_text(context.options.command)},
                      {"launch", context.team.description()},
                      {"tasks", context.tasks.tasks()},
                      {"processes", context.tasks.node_of_process.size()},
                      {"threads", context.tasks.threads_per_process},
                      {"nodes", context.tasks.nodes()},
                      {"clock", description.clock_source},
                      {"directory", records::to_json_text(context.storage.directory)}};
    if (context.options.stage >= 0) {
        line["stage"] = context.options.stage;
    }
    line.update(description.run_members);
    line["plan"] = plan::parse_ordered_json(context.plan.canonical);
    context.root_state.record->write_line("run", line);
}

void write_record_head(Venue& venue) {
    phases::RunContext& context = venue.context();
    const std::vector<ordered_json> nodes = venue.describe_nodes();
    if (!context.is_root()) {
        return;
    }
    write_run_line(context, venue.describe_run());
    for (const ordered_json& node : nodes) {
        context.root_state.hosts.push_back(records::from_json_text(node.value("host", std::string())));
        context.root_state.record->write_line("node", node);
    }
    if (!context.root_state.space_finding.is_null()) {
        context.root_state.record->write_line("finding", context.root_state.space_finding);
    }
    venue.begin_phases();
}

/// Whether the plan skips this phase now. All processes call it.
bool should_skip_phase(const Venue& venue, const phases::RunContext& context, const plan::Phase& phase,
                       std::int64_t begin_ns) {
    if (phase.unless_mismatch &&
        context.team.reduce_maximum(
            context.is_root() && context.root_state.outcome.code == phases::exit_mismatch ? 1 : 0) != 0) {
        return true;
    }
    if (!context.plan.begin_limit || plan::acts_on_files(phase.op)) {
        return false;
    }
    const bool late = context.is_root() && venue.elapsed_ns() - begin_ns >= *context.plan.begin_limit;
    if (context.team.reduce_maximum(late ? 1 : 0) == 0) {
        return false;
    }
    if (context.is_root()) {
        context.root_state.record->write_line(
            "finding",
            {{"id", "not_begun"},
             {"phase", phase.id},
             {"severity", "info"},
             {"text", "phase " + phase.id + " was not begun: the run had lasted longer than limits.begin allows"}});
    }
    return true;
}

void run_phases(Venue& venue) {
    phases::RunContext& context = venue.context();
    const std::vector<int> stages = phases::number_stages(context.plan);
    const std::int64_t begin_ns = venue.elapsed_ns();
    // from an earlier stage, at the root
    results::DirectionRates direction_rates{.write = context.manifest.last_write_rate,
                                            .read = context.manifest.last_read_rate};
    for (std::size_t i = 0; i < context.plan.phases.size(); ++i) {
        const plan::Phase& phase = context.plan.phases[i];
        if (context.options.stage >= 0 && stages[i] != context.options.stage) {
            continue;
        }
        if (context.team.reduce_maximum(context.team.control().stop.load()) != 0) {
            if (context.is_root()) {
                const bool limit = context.team.control().stop.load() == ranks::NodeControl::quit_time_limit;
                context.root_state.outcome.set(
                    phases::exit_interrupted,
                    (limit ? std::string("the time limit of the run ended it") : std::string("interrupted")) +
                        " before phase " + phase.id + "; finished phases are kept");
            }
            return;
        }
        if (should_skip_phase(venue, context, phase, begin_ns)) {
            continue;
        }
        context.phases_begun = i + 1;
        const std::unique_ptr<phases::PhaseSteps> steps = venue.begin_phase(i);
        if (!phases::run_phase(*steps, direction_rates)) {
            return;
        }
    }
}

/// Removes files, ends the record, and prints the outcome. Returns the exit code, equal in all processes.
int finish_run(Venue& venue) {
    phases::RunContext& context = venue.context();
    const bool is_team_lost = !context.team.all_true(true);
    phases::Outcome& outcome = context.root_state.outcome;
    const std::string common_code =
        is_team_lost ? std::string()
                     : context.team.broadcast(context.is_root() ? std::to_string(outcome.code) : std::string());
    const int code = is_team_lost ? phases::exit_failed : std::stoi(common_code);
    // Later stages start only after success, so a failed stage removes the files.
    const bool ends_here = phases::is_last_stage(context.plan, context.options.stage) || code != phases::exit_done;
    const std::optional<files::Removal> removal =
        ends_here ? venue.remove_files(code, is_team_lost) : std::optional<files::Removal>();
    if (!context.is_root()) {
        return code;
    }
    if (is_team_lost) {
        outcome.set(phases::exit_failed, phases::describe_lost_process(context, "at the end of the run"));
    }
    context.shared.board->is_run_finished.store(1);
    if (ends_here) {
        if (const auto finding = rejected_messages_finding(context.team.rejected_messages())) {
            context.root_state.record->write_line("finding", *finding);
        }
        context.root_state.record->write_line("end", end_line(outcome, removal, venue.elapsed_ns()));
    }
    venue.close();
    const std::string trouble = context.root_state.record->first_error();
    print_outcome(outcome, removal.value_or(files::Removal{}), trouble);
    return outcome.code == phases::exit_done && !trouble.empty() ? phases::exit_environment : outcome.code;
}

}  // namespace

int execute(Venue& venue) {
    if (const std::optional<int> code = venue.prepare()) {
        return *code;
    }
    write_record_head(venue);
    try {
        run_phases(venue);
    } catch (const std::exception& error) {
        phases::RunContext& context = venue.context();
        if (context.is_root()) {
            venue.remove_files_after_exception();
            context.shared.board->is_run_finished.store(1);
            context.root_state.record->write_line(
                "end", failed_end_line(phases::exit_environment, error.what(), venue.elapsed_ns()));
        }
        throw;  // the destructor of the team notifies the other processes
    }
    return finish_run(venue);
}

}  // namespace sonde::runs
