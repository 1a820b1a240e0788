// SPDX-License-Identifier: Apache-2.0
#include "runs/process_venue.hpp"

#include "files/object_run.hpp"
#include "phases/collectives.hpp"
#include "phases/process_phase.hpp"
#include "phases/stages.hpp"
#include "plan/check_objects.hpp"
#include "plan/json_io.hpp"
#include "plan/plan_error.hpp"
#include "records/environment.hpp"
#include "records/text.hpp"
#include "runs/bucket.hpp"
#include "runs/device_target.hpp"
#include "runs/inspection.hpp"
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

void start_time_limit(const plan::Plan& plan) {
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
               madvise(ground.base, ground.bytes, MADV_REMOVE) != 0) {
        std::memset(ground.base, 0, ground.bytes);  // the arena is not on tmpfs
    }
    return ground.base;
}

/// Copies the root's facts and the state of earlier stages to all processes.
void adopt_root_state(phases::RunContext& context, const json& facts) {
    context.storage.makes_files = facts.at("files");
    context.storage.memory_backed = facts.at("memory_backed");
    context.storage.file_system = facts.value("file_system", std::string());
    context.storage.full_stripe = facts.value("full_stripe", plan::Bytes{0});
    context.storage.maximum_request = facts.value("maximum_request", plan::Bytes{0});
    context.storage.stripes_files = facts.value("stripes_files", false);
    context.storage.device = facts.value("device", std::uint64_t{0});
    context.storage.directory = facts.at("directory");
    files::Manifest& manifest = context.manifest;
    const json common = plan::parse_json(
        context.team.broadcast(context.is_root() ? plan::serialize_json(json{{"period", manifest.payload_period},
                                                                             {"data", manifest.data.to_json()},
                                                                             {"trees", manifest.trees.to_json()}},
                                                                        plan::JsonEncoding::strict_utf8)
                                                 : std::string()));
    manifest.payload_period = common.at("period");
    manifest.data = files::Dataset::from_json(common.at("data"));
    manifest.files = context.plan.data.files;
    manifest.tasks = context.tasks;
    manifest.has_data = context.plan.has_data;
    if (!context.is_root()) {
        manifest.trees = files::Forest::from_json(common.at("trees"), context.tasks.all_tasks());
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
    const int streams = context.team.location().local_count * context.tasks.threads_per_process * (has_duplex ? 2 : 1);
    context.shared.board = reinterpret_cast<phases::ProgressBoard*>(
        reuse_board_memory(context, phases::ProgressBoard::bytes_for(streams, plan.observe.max_slices)));
    if (context.team.location().is_leader()) {
        new (context.shared.board) phases::ProgressBoard;
        context.shared.board->max_slices = plan.observe.max_slices;
        context.shared.board->clock = meters::Clock::calibrate();
    }
    context.team.all_true(true);
    context.team.register_progress(reinterpret_cast<const std::byte*>(&context.shared.board->meter(0).live_counters),
                                   meters::StreamMeter::address_space_bytes(plan.observe.max_slices),
                                   &context.shared.board->stream_count);
}

}  // namespace

ProcessVenue::ProcessVenue(const plan::Plan& plan, const phases::RunOptions& options, ranks::Team& team)
    : epoch_ns_(meters::Clock::monotonic_ns()),
      started_(records::format_utc_now()),
      context_{.plan = plan,
               .options = options,
               .team = team,
               .tasks = {plan.tasks.threads, team.location().node_of, plan.tasks.active},
               .node_memory = team.reduce_maximum(records::read_node_memory())} {
}

std::int64_t ProcessVenue::elapsed_ns() const {
    return meters::Clock::monotonic_ns() - epoch_ns_;
}

/// The root opens the record and inspects the target; all processes receive the facts. With a member "error" the run
/// does not begin.
json ProcessVenue::open_record_and_inspect() {
    json facts;
    if (context_.is_root()) {
        try {
            record_file_ = files::RecordFile::open(context_.options.record);
            writer_ = std::make_unique<records::Writer>(record_file_->descriptor(), record_file_->path(), epoch_ns_);
            writer_->set_listener(context_.options.listener);
            plan::Bytes largest = 1;
            for (const plan::Phase& phase : context_.plan.phases) {
                largest = std::max(largest, phase.data.access.transfer);
            }
            context_.manifest.payload_period =
                payload::choose_payload_period(context_.plan.phases.front().data.payload, largest);
            context_.manifest.epoch_ns = epoch_ns_;
            facts = inspect_target(context_, std::max(0, context_.options.stage));
            epoch_ns_ = context_.manifest.epoch_ns;
            writer_->set_epoch(epoch_ns_);
        } catch (const plan::PlanError& error) {
            facts = {{"error", error.what()}, {"code", phases::exit_plan}};
        } catch (const std::exception& error) {
            facts = {{"error", error.what()}, {"code", phases::exit_environment}};
        }
    }
    context_.root_state.record = writer_.get();
    return plan::parse_json(context_.team.broadcast(context_.is_root() ? plan::serialize_json(facts) : std::string()));
}

/// Ends a run that did not begin. Returns the exit code.
int ProcessVenue::end_before_start(const json& facts) const {
    if (context_.is_root()) {
        records::print_error(facts.at("error").get<std::string>());
        if (context_.root_state.record != nullptr && context_.options.stage > 0) {
            context_.root_state.record->write_line("end",
                                                   failed_end_line(facts.at("code"), facts.at("error"), elapsed_ns()));
        } else if (context_.root_state.record != nullptr && context_.root_state.record->is_unused() &&
                   record_file_->is_new()) {
            record_file_->remove();  // nothing to record
        }
    }
    return facts.at("code");
}

std::optional<int> ProcessVenue::prepare() {
    const plan::Plan& plan = context_.plan;
    start_time_limit(plan);
    const int used = context_.tasks.tasks();
    context_.team.set_active_processes((used + plan.tasks.threads - 1) / plan.tasks.threads);
    const json facts = open_record_and_inspect();
    if (facts.contains("error")) {
        return end_before_start(facts);
    }
    adopt_root_state(context_, facts);
    if (const std::string complaint = find_node_without_target(context_); !complaint.empty()) {
        if (context_.is_root()) {
            remove_without_team(context_);
        }
        return end_before_start({{"error", complaint}, {"code", phases::exit_environment}});
    }
    allocate_board(context_);
    return std::nullopt;
}

RunDescription ProcessVenue::describe_run() {
    ordered_json members = ordered_json::object();
    if (context_.is_root() && plan::has_object_target(context_.plan.target)) {
        members["store"] = describe_store(context_.plan.target);
    }
    return {.start_date = started_, .clock_source = context_.shared.board->clock.source(), .run_members = members};
}

std::vector<ordered_json> ProcessVenue::describe_nodes() {
    const plan::TargetSettings& target = context_.plan.target;
    const bool has_directory = context_.storage.makes_files && !target.device;
    std::vector<ordered_json> nodes;
    for (const json& node : gather_nodes(context_.team, has_directory ? context_.storage.directory : "/")) {
        nodes.emplace_back(node);
        if (plan::has_object_target(target)) {
            nodes.back()["file_system"] = describe_bucket(target);
        } else if (target.device) {
            nodes.back()["file_system"] = describe_device_target(target.path);
        }
    }
    return nodes;
}

/// Starts the monitor.
void ProcessVenue::begin_phases() {
    std::vector<std::string> ids;
    for (const plan::Phase& phase : context_.plan.phases) {
        ids.push_back(phase.id);
    }
    writer_->share_record(&context_.shared.board->writer_lock, records::Writer::Role::engine);
    monitor_ = std::make_unique<Monitor>(*context_.shared.board, context_.team, *record_file_, epoch_ns_,
                                         context_.plan.observe.progress, ids);
}

std::unique_ptr<phases::PhaseSteps> ProcessVenue::begin_phase(std::size_t index) {
    return std::make_unique<phases::ProcessPhase>(context_, index);
}

std::optional<files::Removal> ProcessVenue::remove_files(int code, bool is_team_lost) {
    files::Removal removal;
    if (!is_team_lost) {
        removal = remove_run_files(context_, code);
    } else if (context_.is_root()) {
        removal = remove_without_team(context_);
    }
    const plan::TargetSettings& target = context_.plan.target;
    // An unfinished run keeps its manifest for `clean`, unless the plan creates no files.
    const bool has_own_files = code != phases::exit_done && creates_files(context_.plan);
    if (context_.is_root() && !has_own_files && phases::is_last_stage(context_.plan, context_.options.stage) &&
        target.keep && !target.keep_manifest) {
        if (plan::has_object_target(target)) {
            files::ObjectRun(target, context_.storage.directory).remove_manifest();
        } else if (context_.storage.makes_files) {
            files::Manifest::remove(context_.open_directory());
        }
    }
    return removal;
}

void ProcessVenue::remove_files_after_exception() {
    remove_without_team(context_);
}

}  // namespace sonde::runs
