// SPDX-License-Identifier: Apache-2.0
#include "workloads/stream_factory.hpp"

#include "backends/gpu_staging.hpp"
#include "workloads/cycle_stream.hpp"
#include "workloads/data_stream.hpp"
#include "workloads/file_stream.hpp"
#include "workloads/operation_log.hpp"
#include "workloads/replay_stream.hpp"
#include "workloads/training_stream.hpp"
#include "workloads/tree_stream.hpp"
#include "workloads/walk_stream.hpp"

#include <array>
#include <cstdio>

namespace sonde::workloads {
namespace {

/// The backend's channel, with the memory of a GPU behind it and a log of its operations when the phase wants them.
std::unique_ptr<backends::Channel> make_layered_channel(const StreamJob& job, const backends::ChannelSetup& setup,
                                                        const meters::Clock& clock) {
    std::unique_ptr<backends::Channel> channel = job.backend->make_channel(setup);
    if (!setup.io->gpus.empty() && !job.backend->traits.transfers_gpu_memory) {
        channel = backends::stage_in_gpu(std::move(channel), setup);
    }
    if (job.phase->operations_file.empty() || job.task < 0) {
        return channel;
    }
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "-%05d.csv", job.task);
    return wrap_in_operation_log(std::move(channel), job.phase->operations_file + name.data(), clock,
                                 static_cast<unsigned>(job.phase->data.io.queue_depth));
}

template <class Time>
std::unique_ptr<TaskStream> make_stream_on(const StreamJob& job, const payload::PayloadBase& base, ranks::Team& team,
                                           const meters::Clock& clock, meters::StreamMeter& meter) {
    backends::ChannelSetup setup;
    setup.io = &job.phase->data.io;
    setup.paced = &job.phase->data.paced;
    setup.target = job.target;
    setup.task = job.task;
    setup.tasks = job.tasks;
    setup.mpi = job.mpi_module;
    setup.shared_file = job.shared_file;
    setup.gpu_copies = {.before_writes = job.phase->data.payload.kind != plan::PayloadKind::zero,
                        .after_reads = job.verify};
    if (job.phase->op == plan::Op::walk) {
        return std::make_unique<WalkStream<Time>>(job, team, clock, meter, make_layered_channel(job, setup, clock));
    }
    if (job.phase->op == plan::Op::cycle) {
        const std::uint64_t length = job.phase->data.access.transfer;
        return std::make_unique<CycleStream<Time>>(
            job, team, clock, meter, make_layered_channel(job, setup, clock),
            std::make_unique<Buffers>(base, Buffers::Setup{.max_length = length, .reads = true}));
    }
    if (job.phase->meta) {
        const bool writes = job.phase->op == plan::Op::create && job.phase->meta->write_bytes > 0;
        const bool reads = job.phase->op == plan::Op::read_items && job.phase->meta->read_bytes > 0;
        std::unique_ptr<Buffers> buffers;
        if (writes || reads) {
            buffers = std::make_unique<Buffers>(base, Buffers::Setup{1, job.phase->data.access.transfer, writes, reads,
                                                                     job.verify, job.tasks_on_node, job.memory});
        }
        return std::make_unique<TreeStream<Time>>(job, team, clock, meter, make_layered_channel(job, setup, clock),
                                                  std::move(buffers));
    }
    if (plan::acts_on_files(job.phase->op)) {
        return std::make_unique<FileStream<Time>>(job, team, clock, meter, job.backend->make_channel(setup));
    }
    setup.max_length = static_cast<std::uint32_t>(job.phase->data.access.transfer);
    if (job.replay) {
        setup.file_count = job.replay->handles;
        auto buffers = std::make_unique<Buffers>(
            base, Buffers::Setup{1, setup.max_length, true, true, false, job.tasks_on_node, job.memory});
        setup.buffer_areas = buffers->areas();
        std::unique_ptr<backends::Channel> channel = make_layered_channel(job, setup, clock);
        return std::make_unique<ReplayStream<Time>>(job, team, clock, meter, std::move(channel), std::move(buffers));
    }
    if (job.training) {
        auto areas = std::make_unique<Buffers>(
            base, Buffers::Setup{static_cast<std::size_t>(job.phase->data.io.queue_depth), setup.max_length, false,
                                 true, false, job.tasks_on_node, job.memory});
        setup.buffer_areas = areas->areas();
        std::unique_ptr<backends::Channel> reader = make_layered_channel(job, setup, clock);
        return std::make_unique<TrainingStream<Time>>(job, team, clock, meter, std::move(reader), std::move(areas));
    }
    auto buffers = std::make_unique<Buffers>(
        base, Buffers::Setup{static_cast<std::size_t>(job.phase->data.io.queue_depth), setup.max_length, job.writes,
                             job.reads, job.verify, job.tasks_on_node, job.memory});
    setup.buffer_areas = buffers->areas();
    std::unique_ptr<backends::Channel> channel = make_layered_channel(job, setup, clock);
    return std::make_unique<DataStream<Time>>(job, team, clock, meter, std::move(channel), std::move(buffers));
}

}  // namespace

std::unique_ptr<TaskStream> make_stream(const StreamJob& job, const payload::PayloadBase& base, ranks::Team& team,
                                        const meters::Clock& clock, meters::StreamMeter& meter) {
    const bool own_clock = job.backend->traits.supports_virtual_time && job.phase->data.paced.virtual_clock;
    return own_clock ? make_stream_on<ChannelClock>(job, base, team, clock, meter)
                     : make_stream_on<MachineClock>(job, base, team, clock, meter);
}

}  // namespace sonde::workloads
