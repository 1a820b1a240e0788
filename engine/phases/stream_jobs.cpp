// SPDX-License-Identifier: Apache-2.0
// Creates stream jobs from a phase of the plan.
#include "phases/stream_jobs.hpp"

#include "files/segments.hpp"
#include "payload/ior_pattern.hpp"
#include "phases/tree_jobs.hpp"
#include "plan/plan_error.hpp"

#include <algorithm>

namespace sonde::phases {

using plan::Op;

std::vector<StreamAssignment> assign_streams(const plan::Phase& phase, const files::TaskMap& tasks, int process) {
    std::vector<StreamAssignment> assignments;
    const int all = tasks.tasks();
    for (int thread = 0; thread < tasks.threads_per_process; ++thread) {
        const int task = process * tasks.threads_per_process + thread;
        if (phase.op != Op::duplex || task >= tasks.tasks()) {
            assignments.push_back({task < tasks.tasks() ? task : no_task, 0});
            continue;
        }
        for (int stream = 0; stream < 2; ++stream) {
            const plan::DuplexStream::TaskSubset who = phase.streams[static_cast<std::size_t>(stream)].tasks;
            const bool first = task < all / 2;
            if (who == plan::DuplexStream::TaskSubset::same ||
                first == (who == plan::DuplexStream::TaskSubset::first_half)) {
                assignments.push_back({task, stream});
            }
        }
    }
    return assignments;
}

namespace {

/// Computes the k-th file of a stream. Holds everything by value, so that it may outlive the job.
struct FileJobSource {
    const RunContext& context;
    const plan::Phase& phase;
    const files::FileMap& map;
    std::vector<int> files;  ///< empty = all files
    int owner;               ///< task that owns the files
    std::uint64_t segments;
    bool writing;
    bool verify;

    workloads::FileJob operator()(std::uint64_t n) const {
        const int k = files.empty() ? static_cast<int>(n) : files[static_cast<std::size_t>(n)];
        const std::uint64_t number = map.file_number(owner, k);
        const files::Dataset& data = context.manifest.data;
        std::uint64_t count = segments;
        std::uint64_t allowed = ~0ULL;
        bool exact = false;
        bool same = false;
        // Every byte of a device can be read, written by a phase or not.
        const bool reads_anything = phase.data.files.is_device() && !verify;
        const files::DataState* source = writing || reads_anything ? nullptr : data.find_source(phase, k);
        if (source != nullptr) {
            exact = data.is_verifiable(*source, phase.data.access, segments, k);
            same = files::is_same_geometry(phase.data.access, segments, source->access, source->segments);
            if (same) {
                allowed = files::operations_in_file(*source, owner, k, source->operations_per_file());
            } else {
                count = limit_operations(*source, k, exact);
            }
        }
        workloads::FileJob job{map.path(owner, k),
                               number,
                               patterns::Geometry(phase.data.access, count, map.share_of_task(owner), number),
                               0,
                               0,
                               {},
                               false,
                               false,
                               false,
                               {},
                               owner,
                               false};
        job.operation_count =
            std::min({allowed, job.geometry.operation_count(), phase.stop.operations.value_or(~0ULL)});
        job.complete_size = job.geometry.end_of_file();
        const bool fresh = writing && phase.makes_files();
        // Shared files are created before the phase, so that a late task does not truncate data of other tasks.
        job.create =
            writing && phase.op == Op::write && !phase.data.files.is_device() && map.share_of_task(owner).sharers == 1;
        job.truncate = fresh && job.create;
        job.no_follow = writing && !context.in_place();
        // Files with individual striping are created before the phase too, and exclusive creation is checked there.
        job.exclusive = job.create && phase.open == plan::OpenMode::exclusive && !context.storage.stripes_files;
        if (verify && payload::is_ior_payload(phase.data.payload.kind)) {
            job.generations = {{0, ~0ULL}};
            job.find_writer = [mine = owner](std::uint64_t) { return mine; };
        } else if (verify && exact) {
            job.generations = data.list_generations(*source, phase.data.access, segments, owner, k);
            job.find_writer = [&tasks = context.tasks, &where = map, mine = owner, same, source](std::uint64_t offset) {
                // With the geometry and order of the writing phase, each task reads what it wrote itself.
                return same ? mine : files::find_writer(*source, where, mine, offset, tasks.tasks());
            };
        }
        return job;
    }

    /// Number of segments of the k-th file that certainly exist, for a geometry other than the writer's. Clears `exact`
    /// when several phases wrote them together.
    std::uint64_t limit_operations(const files::DataState& source, int k, bool& exact) const {
        for (const files::ByteRange& range :
             context.manifest.data.list_written_ranges(source, map, owner, k, context.tasks.tasks())) {
            const auto fits = [&](std::uint64_t count) {
                return phase.data.access.offset >= range.from &&
                       patterns::Geometry(phase.data.access, count, map.share_of_task(owner), 0).end_of_file() <=
                           range.to;
            };
            if (fits(segments)) {
                return segments;
            }
            std::uint64_t low = 0;
            std::uint64_t high = segments;
            while (low + 1 < high) {
                const std::uint64_t middle = low + (high - low) / 2;
                (fits(middle) ? low : high) = middle;
            }
            if (low > 0) {
                return low;
            }
            exact = false;
        }
        throw plan::PlanError("plan: phase \"" + phase.id + "\" reads with another geometry than phase \"" +
                              source.phase + "\" wrote, and less than one segment of it is certainly written: let \"" +
                              source.phase + "\" finish its volume without gaps, or use the same access");
    }
};

/// The data set of a phase with op train; null in other phases.
std::shared_ptr<const workloads::TrainingJob> make_training_job(const RunContext& context, std::size_t index,
                                                                const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    if (!phase.training) {
        return nullptr;
    }
    const std::uint64_t segments = files::segments_of(phase, context.tasks, context.node_memory);
    workloads::TrainingJob job{.training_set = {.tasks = static_cast<std::uint64_t>(context.tasks.tasks()),
                                                .files = static_cast<std::uint64_t>(map.files_per_task()),
                                                .samples = segments},
                               .shuffle = phase.training->shuffle,
                               .seed = phase.data.access.seed,
                               .epoch = index,
                               .make_file_job = {}};
    const FileJobSource source{context, phase, map, {}, 0, segments, false, false};
    job.make_file_job = [source](int owner, std::uint64_t file) {
        FileJobSource of_owner = source;
        of_owner.owner = owner;
        return of_owner(file);
    };
    return std::make_shared<const workloads::TrainingJob>(std::move(job));
}

/// The operations of a task in a replay; null in other phases.
std::shared_ptr<const patterns::TaskOperations> read_replayed_operations(const plan::Phase& phase, int task) {
    return phase.op == Op::replay ? std::make_shared<const patterns::TaskOperations>(
                                        patterns::read_task_operations(phase.replay_file, task))
                                  : nullptr;
}

}  // namespace

workloads::StreamJob make_stream_job(const RunContext& context, std::size_t index, StreamAssignment assignment,
                                     const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    workloads::StreamJob job;
    job.phase = &phase;
    job.backend = backends::find_backend(phase.data.backend);
    job.task = assignment.task;
    job.max_slices = context.plan.observe.max_slices;
    job.slice_ns = context.plan.observe.slice;
    job.intra_barriers = phase.barrier == plan::Barrier::intra;
    job.mpi_module = context.team.mpi_module();
    if (assignment.task == no_task) {
        job.reads = true;  // smallest buffers
        if (phase.meta) {
            job.tree = std::make_shared<workloads::TreeJob>(phase.meta->tree);
        }
        return job;
    }
    job.tasks = context.tasks.tasks();
    job.tasks_on_node = context.tasks.tasks_on(context.team.location().node);
    if (phase.meta) {
        set_tree_job(context, index, assignment.task, job);
        return job;
    }
    job.writes = plan::writes(phase.op);
    job.reads = plan::reads(phase.op);
    std::vector<int> files = phase.files;
    if (phase.op == Op::duplex) {
        const plan::DuplexStream& stream = phase.streams[static_cast<std::size_t>(assignment.stream)];
        job.writes = stream.write;
        job.reads = !stream.write;
        files = {stream.file};
    }
    job.read_ratio = phase.data.access.read_ratio.value_or(0);
    job.generation = index + 1;
    job.file_count = static_cast<std::uint64_t>(files.empty() ? map.files_per_task() : static_cast<int>(files.size()));
    job.shared_file = phase.data.files.mapping == plan::Mapping::shared;
    const int owner = job.writes ? assignment.task : files::shift_task(phase.shift, assignment.task, context.tasks);
    job.device_number = context.storage.device;
    job.root_path = context.in_place() ? "" : map.get_root_directory(owner);
    if (phase.op == Op::remove && !map.is_first_task_of_file(owner)) {
        job.file_count = 0;  // the first task of the file removes it
    }
    job.verify = job.reads && (!job.writes || phase.op == Op::mixed) &&
                 (phase.data.verify == plan::Verify::on_read || phase.data.verify == plan::Verify::both);
    job.training = make_training_job(context, index, map);
    job.replay = read_replayed_operations(phase, assignment.task);
    job.set_path = [&map, files, owner](std::uint64_t n, std::string& path) {
        path = map.path(owner, files.empty() ? static_cast<int>(n) : files[static_cast<std::size_t>(n)]);
    };
    job.make_file_job = FileJobSource{context,
                                      phase,
                                      map,
                                      files,
                                      owner,
                                      files::segments_of(phase, context.tasks, context.node_memory),
                                      job.writes && !(job.reads && phase.op == Op::mixed),
                                      job.verify};
    return job;
}

}  // namespace sonde::phases
