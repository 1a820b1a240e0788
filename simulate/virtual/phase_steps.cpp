// SPDX-License-Identifier: Apache-2.0
// The steps of a phase: like the engine's, with scheduled tasks and the machine instead of threads and files.
#include "virtual/simulation.hpp"

#include "files/segments.hpp"
#include "payload/payload.hpp"
#include "phases/errors.hpp"
#include "phases/phase_begin.hpp"
#include "phases/stream_jobs.hpp"
#include "workloads/stream_factory.hpp"

#include <algorithm>
#include <new>

#include <sys/mman.h>

namespace sonde::simulate {

using meters::StreamMeter;

/// Creates the files that several tasks share, as the engine does before a phase: empty unless the phase overwrites.
void Simulation::create_shared_files(const plan::Phase& phase, const files::FileMap& map) {
    if (phase.meta || phase.op != plan::Op::write || !reaches_storage(phase.data.backend)) {
        return;
    }
    for (int task = 0; task < context_.tasks.tasks(); ++task) {
        if (!map.first_of_file(task) || map.share(task).sharers == 1) {
            continue;
        }
        for (int k = 0; k < map.files_per_task(); ++k) {
            const FileId file = machine_.get_file(map.path(task, k));
            if (phase.open != plan::Open::overwrite) {
                machine_.resize(file, 0);
            }
        }
    }
}

const backends::Backend& Simulation::backend(const std::string& name) const {
    return name == null_backend_name ? null_backend_ : name == paced_backend_name ? paced_backend_ : simulated_backend_;
}

void Simulation::allocate_board() {
    const bool has_duplex =
        std::any_of(plan_.phases.begin(), plan_.phases.end(), [](const auto& p) { return p.op == plan::Op::duplex; });
    const int streams = context_.tasks.all() * (has_duplex ? 2 : 1);
    board_bytes_ = phases::ProgressBoard::bytes_for(streams, plan_.observe.max_slices);
    void* memory =
        mmap(nullptr, board_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    board_memory_ = static_cast<std::byte*>(memory);
    context_.shared.board = new (board_memory_) phases::ProgressBoard;
    context_.shared.board->max_slices = plan_.observe.max_slices;
}

/// Empties the walk board of every node.
void Simulation::reset_walk_boards() {
    std::vector<int> streams(static_cast<std::size_t>(context_.tasks.nodes()));
    for (int task = 0; task < context_.tasks.tasks(); ++task) {
        ++streams[client_of(task)];
    }
    for (std::size_t node = 0; node < streams.size(); ++node) {
        if (walk_boards_.size() <= node) {
            std::byte* memory = team_.allocate_shared(workloads::WalkBoard::bytes_for(streams[node]));
            walk_boards_.push_back(reinterpret_cast<workloads::WalkBoard*>(memory));
        }
        walk_boards_[node]->reset(streams[node]);
    }
}

/// The stripes of a file on the machine's targets.
patterns::FileStripes Simulation::file_stripes(const std::string& path) {
    const ModelLayout layout = machine_.get_layout(machine_.get_file(path));
    const std::vector<TargetSite>& targets = machine_.site().targets;
    patterns::StripePart part;
    part.stripe = layout.size;
    for (std::uint32_t k = 0; k < layout.count; ++k) {
        part.targets.push_back(targets[(layout.start + k) % targets.size()].id);
    }
    return {part};
}

std::vector<workloads::StreamJob> Simulation::make_jobs(std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = plan_.phases[index];
    std::vector<workloads::StreamJob> jobs;
    std::uint64_t largest = std::max<std::uint64_t>(phase.data.access.transfer, 1);
    if (phase.meta) {
        largest = std::max({largest, phase.meta->write, phase.meta->read});
    }
    // For each slot of the queue: two images of the largest transfer, the payload period and pages at both ends.
    const auto depth = static_cast<std::uint64_t>(std::max(phase.data.io.queue_depth, 1));
    const std::uint64_t needed = depth * (2 * largest + (std::uint64_t{4} << 20U));
    if (buffer_.size() < needed) {
        buffer_.resize(needed);
    }
    // One meter suffices, since the tasks run in turn.
    const auto target_meter = std::make_shared<meters::TargetMeter>(0, static_cast<std::uint64_t>(plan_.observe.slice));
    const auto processes = static_cast<int>(context_.tasks.node_of_process.size());
    const bool uses_storage = reaches_storage(phase.data.backend);
    if (phase.op == plan::Op::walk) {
        reset_walk_boards();
    }
    for (int process = 0; process < processes; ++process) {
        if (phase.op == plan::Op::walk) {
            context_.shared.walk = walk_boards_[static_cast<std::size_t>(context_.tasks.node_of_process[process])];
        }
        for (const phases::StreamAssignment& assignment : phases::assign_streams(phase, context_.tasks, process)) {
            workloads::StreamJob job = phases::make_stream_job(context_, index, assignment, map);
            job.backend = &backend(phase.data.backend);
            job.verify = false;
            if (uses_storage) {
                job.stripes = [this](const std::string& path) { return file_stripes(path); };
                job.target_meter = target_meter;
            }
            job.stream = static_cast<int>(jobs.size());
            job.memory = buffer_;
            if (assignment.task != phases::no_task) {
                job.tasks_on_node = 1;  // all tasks have one buffer
            }
            StreamMeter& meter = context_.shared.board->meter(job.stream);
            madvise(&meter, StreamMeter::bytes_for(plan_.observe.max_slices), MADV_DONTNEED);
            new (&meter) StreamMeter;
            meter.task = assignment.task;
            meter.stream = assignment.stream;
            jobs.push_back(std::move(job));
        }
    }
    return jobs;
}

phases::TimedResult Simulation::measure_phase(std::size_t index, const files::FileMap& map,
                                              std::vector<workloads::StreamJob>& jobs,
                                              const treatments::Residency& residency) {
    const plan::Phase& phase = plan_.phases[index];
    phases::ProgressBoard& board = *context_.shared.board;
    const bool whole_volume = !phase.stop.time && !phase.stop.min_time;
    const Time start = machine_.now();
    storage_.phase_start = start;
    directories_.listings.reset();
    phases::reset_counters(team_);
    const payload::Base base(phase.data.payload, context_.manifest.period);
    std::vector<std::unique_ptr<workloads::TaskStream>> streams;
    std::vector<std::function<void()>> bodies;
    std::vector<std::uint32_t> clients;
    for (workloads::StreamJob& job : jobs) {
        StreamMeter& meter = board.meter(job.stream);
        if (job.task != phases::no_task) {
            if (plan::on_files(phase.op) || phase.meta) {
                meter.planned_operations = whole_volume ? job.files : 0;
            } else {
                const workloads::FileJob first = job.file(0);
                meter.planned_operations = whole_volume ? first.operations * job.files : 0;
                meter.planned_bytes = meter.planned_operations * phase.data.access.transfer;
            }
        }
        streams.push_back(workloads::make_stream(job, base, team_, board.clock, meter));
        clients.push_back(job.task == phases::no_task ? 0 : client_of(job.task));
        bodies.emplace_back([stream = streams.back().get()] { stream->run(); });
    }
    board.streams.store(static_cast<int>(jobs.size()));
    phases::write_phase_begin(context_, index, map, residency);
    scheduler_.run_tasks(std::move(bodies), clients, start);

    phases::TimedResult measured;
    measured.stop = team_.control().stop.load();
    std::uint32_t doublings = 0;
    for (const workloads::StreamJob& job : jobs) {
        StreamMeter& meter = board.meter(job.stream);
        meter.user_ns = 0;
        meter.system_ns = static_cast<std::uint64_t>(scheduler_.task(static_cast<std::size_t>(job.stream)).cpu_time);
        doublings = std::max(doublings, meter.slices_doublings);
    }
    const std::int64_t width = plan_.observe.slice << doublings;
    for (const workloads::StreamJob& job : jobs) {
        if (job.task != phases::no_task) {
            measured.totals.add(board.meter(job.stream), context_.tasks.node_of(job.task), plan_.observe.max_slices,
                                width, doublings, 0);
        }
    }
    add_target_totals(streams, measured.totals);
    return measured;
}

void Simulation::add_target_totals(const std::vector<std::unique_ptr<workloads::TaskStream>>& streams,
                                   results::Totals& totals) const {
    meters::TargetsServed sum;
    for (const auto& stream : streams) {
        const meters::TargetsServed served = stream->targets();
        sum.meter = served.meter != nullptr ? served.meter : sum.meter;
        sum.files += served.files;
        sum.known += served.known;
    }
    if (sum.meter != nullptr) {
        const std::uint32_t doublings = sum.meter->doublings();
        const auto board = std::make_unique<meters::TargetBoard>();
        board->add(sum, doublings);
        totals.targets = results::TargetTotals::from_board(*board, plan_.observe.slice << doublings);
    }
}

void Simulation::write_errors(const plan::Phase& phase, const phases::TimedResult& measured) {
    const nlohmann::json errors = phases::gather_errors(context_, phase);
    phases::write_errors(context_, phase, errors);
    if (measured.stop != 0) {
        context_.root_state.outcome.set(phases::exit_failed, "phase " + phase.id + " failed");
    }
}

results::Circumstances Simulation::make_circumstances(std::size_t index, const treatments::Residency& residency) const {
    const plan::Phase& phase = plan_.phases[index];
    return {.phase = &phase,
            .backend = phase.data.backend,
            .tasks = context_.tasks.tasks(),
            .tasks_per_node = context_.tasks.tasks_on(0),
            .cpus = static_cast<int>(machine_.site().clients.front().cores),
            .node_memory = context_.node_memory,
            .nodes = context_.tasks.nodes(),
            .residency = residency.share(),
            .residency_known = residency.known,
            .file_system = machine_.site().fs.kind,
            .removed_before = {}};
}

}  // namespace sonde::simulate
