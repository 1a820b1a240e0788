// SPDX-License-Identifier: Apache-2.0
#include "virtual/simulated_phase.hpp"

#include "phases/stream_jobs.hpp"
#include "plan/plan_error.hpp"
#include "workloads/stream_factory.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>

#include <sys/mman.h>

namespace sonde::simulate {

using meters::StreamMeter;

namespace {

constexpr double saturated = 0.9;  ///< from this utilization on, a part limits the rate

}  // namespace

/// Creates the files that several tasks share, as the engine does before a phase: empty unless the phase overwrites.
void SimulatedPhase::create_shared_files() {
    if (phase().meta || phase().op != plan::Op::write || !reaches_storage(phase().data.backend)) {
        return;
    }
    for (int task = 0; task < context().tasks.tasks(); ++task) {
        if (!map().is_first_task_of_file(task) || map().share_of_task(task).sharers == 1) {
            continue;
        }
        for (int k = 0; k < map().files_per_task(); ++k) {
            const FileId file = platform_.machine.get_file(map().path(task, k));
            if (phase().open != plan::OpenMode::overwrite) {
                platform_.machine.resize_file(file, 0);
            }
        }
    }
}

/// Empties the walk board of every node.
void SimulatedPhase::reset_walk_boards() {
    std::vector<int> streams(static_cast<std::size_t>(context().tasks.nodes()));
    for (int task = 0; task < context().tasks.tasks(); ++task) {
        ++streams[client_of(task)];
    }
    for (std::size_t node = 0; node < streams.size(); ++node) {
        if (platform_.walk_boards.size() <= node) {
            std::byte* memory = platform_.team.allocate_shared(workloads::WalkBoard::bytes_for(streams[node]));
            platform_.walk_boards.push_back(reinterpret_cast<workloads::WalkBoard*>(memory));
        }
        platform_.walk_boards[node]->reset(streams[node]);
    }
}

/// The stripes of a file on the machine's targets.
patterns::FileStripes SimulatedPhase::file_stripes(const std::string& path) {
    const ModelLayout layout = platform_.machine.get_layout(platform_.machine.get_file(path));
    const std::vector<TargetDescription>& targets = platform_.machine.system().targets;
    patterns::StripePart part;
    part.stripe = layout.size;
    for (std::uint32_t k = 0; k < layout.count; ++k) {
        part.targets.push_back(targets[(layout.start + k) % targets.size()].id);
    }
    return {part};
}

void SimulatedPhase::create_jobs() {
    const plan::Plan& plan = context().plan;
    std::vector<std::byte>& buffer = platform_.buffer;
    std::uint64_t largest = std::max<std::uint64_t>(phase().data.access.transfer, 1);
    if (phase().meta) {
        largest = std::max({largest, phase().meta->write_bytes, phase().meta->read_bytes});
    }
    // For each slot of the queue: two images of the largest transfer, the payload period and pages at both ends.
    const auto depth = static_cast<std::uint64_t>(std::max(phase().data.io.queue_depth, 1));
    const std::uint64_t needed = depth * (2 * largest + (std::uint64_t{4} << 20U));
    if (buffer.size() < needed) {
        buffer.resize(needed);
    }
    // One meter suffices, since the tasks run in turn.
    const auto target_meter = std::make_shared<meters::TargetMeter>(0, static_cast<std::uint64_t>(plan.observe.slice));
    const auto processes = static_cast<int>(context().tasks.node_of_process.size());
    const bool uses_storage = reaches_storage(phase().data.backend);
    if (phase().op == plan::Op::walk) {
        reset_walk_boards();
    }
    for (int process = 0; process < processes; ++process) {
        if (phase().op == plan::Op::walk) {
            context().shared.walk =
                platform_.walk_boards[static_cast<std::size_t>(context().tasks.node_of_process[process])];
        }
        for (const phases::StreamAssignment& assignment : phases::assign_streams(phase(), context().tasks, process)) {
            workloads::StreamJob job = phases::make_stream_job(context(), index(), assignment, map());
            job.backend = &platform_.backend(phase().data.backend);
            job.verify = false;
            if (uses_storage) {
                job.query_stripes = [this](const std::string& path) { return file_stripes(path); };
                job.target_meter = target_meter;
            }
            job.stream_index = static_cast<int>(jobs_.size());
            job.memory = buffer;
            if (assignment.task != phases::no_task) {
                job.tasks_on_node = 1;  // all tasks have one buffer
            }
            StreamMeter& own_meter = meter(job);
            madvise(&own_meter, StreamMeter::address_space_bytes(plan.observe.max_slices), MADV_DONTNEED);
            new (&own_meter) StreamMeter;
            own_meter.task = assignment.task;
            own_meter.duplex_stream = assignment.stream;
            jobs_.push_back(std::move(job));
        }
    }
}

bool SimulatedPhase::create_streams() {
    create_shared_files();
    platform_.storage.phase_start = platform_.machine.now();
    loads_at_start_ = platform_.machine.part_loads();
    platform_.directories.listings.reset();
    base_ = std::make_unique<payload::PayloadBase>(phase().data.payload, context().manifest.payload_period);
    const bool whole_volume = !phase().stop.time && !phase().stop.min_time;
    try {
        create_jobs();
        for (workloads::StreamJob& job : jobs_) {
            StreamMeter& own_meter = meter(job);
            if (job.task == phases::no_task) {
                // The stream only takes part in barriers.
            } else if (job.replay) {
                own_meter.planned_operations = job.replay->operations.size();
                own_meter.planned_bytes = job.replay->bytes;
            } else if (plan::acts_on_files(phase().op) || phase().meta) {
                own_meter.planned_operations = whole_volume ? job.file_count : 0;
            } else {
                const workloads::FileJob first = job.make_file_job(0);
                own_meter.planned_operations = whole_volume ? first.operation_count * job.file_count : 0;
                own_meter.planned_bytes = phase().data.access.bytes_of(own_meter.planned_operations);
            }
            streams_.push_back(
                workloads::make_stream(job, *base_, platform_.team, context().shared.board->clock, own_meter));
        }
    } catch (const plan::PlanError& error) {
        context().root_state.outcome.set(phases::exit_plan, error.what());
        return false;
    }
    context().shared.board->stream_count.store(static_cast<int>(jobs_.size()));
    return true;
}

bool SimulatedPhase::run_streams() {
    std::vector<std::function<void()>> bodies;
    std::vector<std::uint32_t> clients;
    for (const workloads::StreamJob& job : jobs_) {
        clients.push_back(job.task == phases::no_task ? 0 : client_of(job.task));
        bodies.emplace_back([stream = streams_[bodies.size()].get()] { stream->run(); });
    }
    platform_.scheduler.run_tasks(std::move(bodies), clients, platform_.storage.phase_start);
    return true;
}

phases::TimedResult SimulatedPhase::collect() {
    const plan::Observe& observe = context().plan.observe;
    phases::TimedResult result;
    result.stop_reason = platform_.team.control().stop.load();
    std::uint32_t doublings = 0;
    for (const workloads::StreamJob& job : jobs_) {
        const ScheduledTask& task = platform_.scheduler.task(static_cast<std::size_t>(job.stream_index));
        meter(job).user_ns = 0;
        meter(job).system_ns = static_cast<std::uint64_t>(task.cpu_time);
        doublings = std::max(doublings, meter(job).slices_doublings);
    }
    const std::int64_t width = observe.slice << doublings;
    for (const workloads::StreamJob& job : jobs_) {
        if (job.task != phases::no_task) {
            result.totals.add(meter(job), context().tasks.node_of(job.task), observe.max_slices, width, doublings, 0);
        }
    }
    add_target_totals(result.totals);
    return result;
}

void SimulatedPhase::add_target_totals(results::Totals& totals) const {
    meters::TargetsServed sum;
    for (const auto& stream : streams_) {
        const meters::TargetsServed served = stream->targets();
        sum.meter = served.meter != nullptr ? served.meter : sum.meter;
        sum.opened_files += served.opened_files;
        sum.known_layouts += served.known_layouts;
    }
    if (sum.meter != nullptr) {
        const std::uint32_t doublings = sum.meter->doublings();
        const auto board = std::make_unique<meters::TargetBoard>();
        board->add(sum, doublings);
        totals.targets = results::TargetTotals::from_board(*board, context().plan.observe.slice << doublings);
    }
}

/// Writes which part of the machine was busiest in the phase.
void SimulatedPhase::write_bottleneck() {
    const double seconds = to_seconds(platform_.machine.now() - platform_.storage.phase_start);
    const Bottleneck busiest = find_bottleneck(loads_at_start_, platform_.machine.part_loads(), seconds);
    if (busiest.kind.empty() || !reaches_storage(phase().data.backend)) {
        return;
    }
    const auto percent = std::to_string(std::lround(100 * busiest.utilization)) + " %";
    std::string sentence =
        "The busiest part was " + busiest.kind + " " + busiest.part + ": " + percent + " of the phase";
    if (busiest.similar_count > 1) {
        sentence += ", and " + std::to_string(busiest.similar_count - 1) + " of " +
                    std::to_string(busiest.kind_count - 1) + " others are within 5 % of it";
    }
    sentence += busiest.utilization < saturated
                    ? ". No part is saturated: latency and the calls in flight limit the rate."
                    : ".";
    context().root_state.record->write_line(
        "finding",
        {{"id", "model_bottleneck"},
         {"phase", phase().id},
         {"severity", "info"},
         {"text", sentence},
         {"evidence", {{"kind", busiest.kind}, {"part", busiest.part}, {"utilization", busiest.utilization}}}});
}

results::PhaseCircumstances SimulatedPhase::collect_circumstances(const phases::TimedResult& /*result*/,
                                                                  const phases::TreatmentEffect& effect) {
    write_bottleneck();
    return {.phase = &phase(),
            .backend = phase().data.backend,
            .tasks = context().tasks.tasks(),
            .tasks_per_node = context().tasks.tasks_on(0),
            .cpus = static_cast<int>(platform_.machine.system().clients.front().cores),
            .node_memory = context().node_memory,
            .nodes = context().tasks.nodes(),
            .residency = effect.residency.share(),
            .residency_known = effect.residency.is_known,
            .file_system = platform_.machine.system().file_system.kind,
            .earlier_removal = {}};
}

}  // namespace sonde::simulate
