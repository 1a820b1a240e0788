// SPDX-License-Identifier: Apache-2.0
// From a phase of the plan to what each stream does.
#include "phases/jobs.hpp"

#include "files/segments.hpp"
#include "payload/ior_pattern.hpp"
#include "phases/tree_jobs.hpp"
#include "plan/parse.hpp"

#include <algorithm>

namespace sonde::phases {

using plan::Op;

std::vector<StreamPlace> streams_of(const plan::Phase& phase, const files::TaskMap& tasks, int process) {
    std::vector<StreamPlace> places;
    const int all = tasks.tasks();
    for (int thread = 0; thread < tasks.threads; ++thread) {
        const int task = process * tasks.threads + thread;
        if (phase.op != Op::duplex || task >= tasks.tasks()) {
            places.push_back({task < tasks.tasks() ? task : nobody, 0});
            continue;
        }
        for (int lane = 0; lane < 2; ++lane) {
            const plan::Lane::Tasks who = phase.lanes[static_cast<std::size_t>(lane)].tasks;
            const bool first = task < all / 2;
            if (who == plan::Lane::Tasks::same || first == (who == plan::Lane::Tasks::first_half)) {
                places.push_back({task, lane});
            }
        }
    }
    return places;
}

namespace {

/// How a stream finds its k-th file; holds everything by value, so that it may outlive the job.
struct FileSource {
    const Context& context;
    const plan::Phase& phase;
    const files::FileMap& map;
    std::vector<int> files;  ///< empty: all of them
    int owner;               ///< task whose files these are
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
        const files::DataState* source = writing ? nullptr : data.source(phase, k);
        if (source != nullptr) {
            exact = data.verifiable(*source, phase.data.access, segments, k);
            same = files::same_geometry(phase.data.access, segments, source->access, source->segments);
            if (same) {
                allowed = files::operations_in_file(*source, owner, k, source->operations_per_file());
            } else {
                count = shortened(*source, k, exact);
            }
        }
        workloads::FileJob job{map.path(owner, k),
                               number,
                               patterns::Geometry(phase.data.access, count, map.share(owner), number),
                               0,
                               0,
                               {},
                               false,
                               false,
                               false,
                               {},
                               owner};
        job.operations = std::min({allowed, job.geometry.operations(), phase.stop.operations.value_or(~0ULL)});
        job.size = job.geometry.end_of_file();
        const bool fresh = writing && phase.op == Op::write && phase.open != plan::Open::overwrite;
        // Files of several tasks are made before the phase, so that no late task empties what others have written.
        job.create = writing && phase.op == Op::write && map.share(owner).sharers == 1;
        job.truncate = fresh && job.create;
        // With stripes of their own, files are made before the phase as well, and it is there that they must be new.
        job.exclusive = job.create && phase.open == plan::Open::exclusive && !context.storage.stripes_files;
        if (verify && payload::tells_itself(phase.data.payload.kind)) {
            job.written = {{0, ~0ULL}};
            job.writer = [mine = owner](std::uint64_t) { return mine; };
        } else if (verify && exact) {
            job.written = data.written(*source, phase.data.access, segments, owner, k);
            job.writer = [&tasks = context.tasks, &where = map, mine = owner, same, source](std::uint64_t offset) {
                // The same operations in the same order are those of one task, also where a file is dealt at random.
                return same ? mine : files::writer_of(*source, where, mine, offset, tasks.tasks());
            };
        }
        return job;
    }

    /// Segments of the k-th file that another geometry than the writer's may read: what is certainly there. `exact` is
    /// taken back when that is what several phases left together.
    std::uint64_t shortened(const files::DataState& source, int k, bool& exact) const {
        for (const files::Range& range : context.manifest.data.certain(source, map, owner, k, context.tasks.tasks())) {
            const auto fits = [&](std::uint64_t count) {
                return phase.data.access.offset >= range.from &&
                       patterns::Geometry(phase.data.access, count, map.share(owner), 0).end_of_file() <= range.to;
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

}  // namespace

workloads::StreamJob job_of(const Context& context, std::size_t index, StreamPlace place, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    workloads::StreamJob job;
    job.phase = &phase;
    job.backend = backends::find(phase.data.backend);
    job.task = place.task;
    job.max_slices = context.plan.observe.max_slices;
    job.slice_ns = context.plan.observe.slice;
    job.intra_barriers = phase.barrier == plan::Barrier::intra;
    if (place.task == nobody) {
        job.reads = true;  // the least of buffers
        job.mpi = context.team.mpi();
        if (phase.meta) {
            job.tree = std::make_shared<workloads::TreeJob>(phase.meta->tree);
        }
        return job;
    }
    job.tasks = context.tasks.tasks();
    job.tasks_on_node = context.tasks.tasks_on(context.team.place().node);
    if (phase.meta) {
        add_tree(context, index, place, job);
        return job;
    }
    job.writes = plan::writes(phase.op);
    job.reads = plan::reads(phase.op);
    std::vector<int> files = phase.files;
    if (phase.op == Op::duplex) {
        const plan::Lane& lane = phase.lanes[static_cast<std::size_t>(place.lane)];
        job.writes = lane.write;
        job.reads = !lane.write;
        files = {lane.file};
    }
    job.read_ratio = phase.data.access.read_ratio.value_or(0);
    job.generation = index + 1;
    job.files = static_cast<std::uint64_t>(files.empty() ? map.files_per_task() : static_cast<int>(files.size()));
    job.shared_file = phase.data.files.mapping == plan::Mapping::shared;
    const int owner = job.writes ? place.task : files::shifted(phase.shift, place.task, context.tasks);
    if (phase.op == Op::remove && !map.first_of_file(owner)) {
        job.files = 0;  // the first task that shares it removes it
    }
    job.verify = job.reads && !job.writes &&
                 (phase.data.verify == plan::Verify::on_read || phase.data.verify == plan::Verify::both);
    job.mpi = context.team.mpi();
    job.name = [&map, files, owner](std::uint64_t n, std::string& path) {
        path = map.path(owner, files.empty() ? static_cast<int>(n) : files[static_cast<std::size_t>(n)]);
    };
    job.file = FileSource{context,
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
