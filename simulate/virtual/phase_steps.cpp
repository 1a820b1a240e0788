// SPDX-License-Identifier: Apache-2.0
// The steps of a phase that the engine takes with threads and files, taken here with players and the machine.
#include "virtual/simulation.hpp"

#include "files/segments.hpp"
#include "payload/payload.hpp"
#include "phases/announce.hpp"
#include "phases/errors.hpp"
#include "phases/jobs.hpp"
#include "plan/parse.hpp"
#include "virtual/without_storage.hpp"

#include <algorithm>
#include <new>

#include <sys/mman.h>

namespace sonde::simulate {

using meters::StreamMeter;

/// Files of several tasks are there before the phase begins, empty when they are to be fresh, as the engine makes them.
void Simulation::make_shared_files(const plan::Phase& phase, const files::FileMap& map) {
    if (phase.meta || phase.op != plan::Op::write || without_storage(phase.data.backend) != nullptr) {
        return;
    }
    for (int task = 0; task < context_.tasks.tasks(); ++task) {
        if (!map.first_of_file(task) || map.share(task).sharers == 1) {
            continue;
        }
        for (int k = 0; k < map.files_per_task(); ++k) {
            const FileId file = machine_.file(map.path(task, k));
            if (phase.open != plan::Open::overwrite) {
                machine_.resize(file, 0);
            }
        }
    }
}

void Simulation::lay_board() {
    const bool lanes =
        std::any_of(plan_.phases.begin(), plan_.phases.end(), [](const auto& p) { return p.op == plan::Op::duplex; });
    const int streams = context_.tasks.all() * (lanes ? 2 : 1);
    board_bytes_ = phases::Board::bytes_for(streams, plan_.observe.max_slices);
    void* memory =
        mmap(nullptr, board_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    board_memory_ = static_cast<std::byte*>(memory);
    context_.shared.board = new (board_memory_) phases::Board;
    context_.shared.board->max_slices = plan_.observe.max_slices;
}

/// A walk begins with empty stacks on every node.
void Simulation::lay_walk_boards() {
    std::vector<int> streams(static_cast<std::size_t>(context_.tasks.nodes()));
    for (int task = 0; task < context_.tasks.tasks(); ++task) {
        ++streams[client_of(task)];
    }
    for (std::size_t node = 0; node < streams.size(); ++node) {
        if (walks_.size() <= node) {
            std::byte* memory = team_.shared(workloads::WalkBoard::bytes_for(streams[node]));
            walks_.push_back(reinterpret_cast<workloads::WalkBoard*>(memory));
        }
        walks_[node]->reset(streams[node]);
    }
}

/// Which target has which byte of a file: what the machine itself goes by.
patterns::FileStripes Simulation::stripes_of(const std::string& path) {
    const Layout layout = machine_.layout(machine_.file(path));
    const std::vector<TargetSite>& targets = machine_.site().targets;
    patterns::StripePart part;
    part.stripe = layout.size;
    for (std::uint32_t k = 0; k < layout.count; ++k) {
        part.targets.push_back(targets[(layout.start + k) % targets.size()].id);
    }
    return {part};
}

std::vector<workloads::StreamJob> Simulation::jobs_of(std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = plan_.phases[index];
    std::vector<workloads::StreamJob> jobs;
    std::uint64_t largest = std::max<std::uint64_t>(phase.data.access.transfer, 1);
    if (phase.meta) {
        largest = std::max({largest, phase.meta->write, phase.meta->read});
    }
    // Images of the largest transfer, once more the period, and pages at both ends; a queue has so many.
    const auto depth = static_cast<std::uint64_t>(std::max(phase.data.io.queue_depth, 1));
    const std::uint64_t needed = depth * (2 * largest + (std::uint64_t{4} << 20U));
    if (buffer_.size() < needed) {
        buffer_.resize(needed);
    }
    // The players take turns, so one meter serves all.
    const auto served = std::make_shared<meters::TargetMeter>(0, static_cast<std::uint64_t>(plan_.observe.slice));
    const auto processes = static_cast<int>(context_.tasks.node_of_process.size());
    const backends::Backend* const alongside = without_storage(phase.data.backend);
    if (phase.op == plan::Op::walk) {
        lay_walk_boards();
    }
    for (int process = 0; process < processes; ++process) {
        if (phase.op == plan::Op::walk) {
            context_.shared.walk = walks_[static_cast<std::size_t>(context_.tasks.node_of_process[process])];
        }
        for (const phases::StreamPlace& place : phases::streams_of(phase, context_.tasks, process)) {
            workloads::StreamJob job = phases::job_of(context_, index, place, map);
            job.backend = alongside != nullptr ? alongside : &simulated_backend();
            job.verify = false;
            if (alongside == nullptr) {
                job.stripes = [this](const std::string& path) { return stripes_of(path); };
                job.target_meter = served;
            }
            job.stream = static_cast<int>(jobs.size());
            job.memory = buffer_;
            if (place.task != phases::nobody) {
                job.tasks_on_node = 1;  // all of them have the one memory
            }
            StreamMeter& meter = context_.shared.board->meter(job.stream);
            madvise(&meter, StreamMeter::bytes_for(plan_.observe.max_slices), MADV_DONTNEED);
            new (&meter) StreamMeter;
            meter.task = place.task;
            meter.lane = place.lane;
            jobs.push_back(std::move(job));
        }
    }
    return jobs;
}

phases::Measured Simulation::time(std::size_t index, const files::FileMap& map, std::vector<workloads::StreamJob>& jobs,
                                  const treatments::Residency& residency) {
    const plan::Phase& phase = plan_.phases[index];
    phases::Board& board = *context_.shared.board;
    const bool whole_volume = !phase.stop.time && !phase.stop.min_time;
    const Time start = machine_.now();
    set_stage(&conductor_, &directories_, start);
    phases::begin_counting(team_);
    const payload::Base base(phase.data.payload, context_.manifest.period);
    std::vector<std::unique_ptr<workloads::Stream>> streams;
    std::vector<std::function<void()>> bodies;
    std::vector<std::uint32_t> clients;
    for (workloads::StreamJob& job : jobs) {
        StreamMeter& meter = board.meter(job.stream);
        if (job.task != phases::nobody) {
            if (plan::on_files(phase.op) || phase.meta) {
                meter.planned_operations = whole_volume ? job.files : 0;
            } else {
                const workloads::FileJob first = job.file(0);
                meter.planned_operations = whole_volume ? first.operations * job.files : 0;
                meter.planned_bytes = meter.planned_operations * phase.data.access.transfer;
            }
        }
        streams.push_back(workloads::Stream::make(job, base, team_, board.clock, meter));
        clients.push_back(job.task == phases::nobody ? 0 : client_of(job.task));
        bodies.emplace_back([stream = streams.back().get()] { stream->run(); });
    }
    board.streams.store(static_cast<int>(jobs.size()));
    phases::announce(context_, index, map, residency);
    conductor_.play(std::move(bodies), clients, start);

    phases::Measured measured;
    measured.stop = team_.control().stop.load();
    std::uint32_t doublings = 0;
    for (const workloads::StreamJob& job : jobs) {
        StreamMeter& meter = board.meter(job.stream);
        meter.user_ns = 0;
        meter.system_ns = static_cast<std::uint64_t>(conductor_.player(static_cast<std::size_t>(job.stream)).cpu);
        doublings = std::max(doublings, meter.slices_doublings);
    }
    const std::int64_t width = plan_.observe.slice << doublings;
    for (const workloads::StreamJob& job : jobs) {
        if (job.task != phases::nobody) {
            measured.totals.add(board.meter(job.stream), context_.tasks.node_of(job.task), plan_.observe.max_slices,
                                width, doublings, 0);
        }
    }
    add_targets(streams, measured.totals);
    return measured;
}

void Simulation::add_targets(const std::vector<std::unique_ptr<workloads::Stream>>& streams,
                             results::Totals& totals) const {
    meters::TargetsServed all;
    for (const auto& stream : streams) {
        const meters::TargetsServed served = stream->targets();
        all.meter = served.meter != nullptr ? served.meter : all.meter;  // one for all
        all.files += served.files;
        all.known += served.known;
    }
    if (all.meter != nullptr) {
        const std::uint32_t doublings = all.meter->doublings();
        const auto board = std::make_unique<meters::TargetBoard>();
        board->add(all, doublings);
        totals.targets = results::Targets::of(*board, plan_.observe.slice << doublings);
    }
}

void Simulation::settle_errors(const plan::Phase& phase, const phases::Measured& measured) {
    const nlohmann::json errors = phases::gather_errors(context_, phase);
    phases::write_errors(context_, phase, errors);
    if (measured.stop != 0) {
        context_.at_root.outcome.set(phases::exit_failed, "phase " + phase.id + " failed");
    }
}

results::Circumstances Simulation::circumstances(std::size_t index, const treatments::Residency& residency) const {
    const plan::Phase& phase = plan_.phases[index];
    return {.phase = &phase,
            .backend = phase.data.backend,
            .tasks = context_.tasks.tasks(),
            .tasks_per_node = context_.tasks.tasks_on(0),
            .cpus = static_cast<int>(machine_.site().clients.front().cores),
            .node_memory = context_.node_memory,
            .nodes = context_.tasks.nodes(),
            .resident = residency.share(),
            .resident_known = residency.known,
            .file_system = machine_.site().fs.kind,
            .removed_before = {}};
}

}  // namespace sonde::simulate
