// SPDX-License-Identifier: Apache-2.0
// Moving bytes: what one stream does between the barrier that starts a phase and the one that ends it.
#pragma once

#include "backends/backend.hpp"
#include "meters/clock.hpp"
#include "meters/stream_meter.hpp"
#include "meters/target_meter.hpp"
#include "patterns/geometry.hpp"
#include "patterns/operation_list.hpp"
#include "payload/payload.hpp"
#include "plan/plan.hpp"
#include "ranks/team.hpp"
#include "workloads/target_counter.hpp"
#include "workloads/training_job.hpp"
#include "workloads/tree_job.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sonde::workloads {

/// The data of one file as earlier phases left it, newest first: operations below `operations` carry `generation`.
struct WrittenGeneration {
    std::uint64_t generation = 0;
    std::uint64_t operation_count = 0;
};

/// One file as one stream uses it.
struct FileJob {
    std::string path;
    std::uint64_t file_number = 0;
    patterns::Geometry geometry;
    std::uint64_t operation_count = 0;           ///< how many of the geometry's operations may be done in a pass
    std::uint64_t complete_size = 0;             ///< bytes of the whole file when complete
    std::vector<WrittenGeneration> generations;  ///< reads: for verification; empty: what is right is not known
    bool create = false, truncate = false, exclusive = false;
    /// Returns the task that wrote a byte of the file, for error messages; -1 if unknown.
    std::function<int(std::uint64_t offset)> find_writer;
    int owner = 0;           ///< task whose part of the file this is: the writer itself, or whom a shift names
    bool no_follow = false;  ///< the run made the file, so a symbolic link there is somebody else's
};

/// All that a stream needs; made by phases/runner for each stream of a phase.
struct StreamJob {
    const plan::Phase* phase = nullptr;
    const plan::TargetSettings* target = nullptr;
    const backends::Backend* backend = nullptr;
    int task = 0, tasks = 1;
    int tasks_on_node = 1;
    int stream_index = 0;  ///< number among the streams of this process: its place at barriers
    bool writes = false, reads = false;
    double read_ratio = 0;         ///< when both
    std::uint64_t generation = 0;  ///< of what is written
    std::uint64_t file_count = 0;
    std::function<FileJob(std::uint64_t)> make_file_job;
    /// The run's directory that holds all files of this stream; empty: the plan names each file.
    std::string root_path;
    /// The same, open while the phase lasts; `anywhere`: files are opened by their whole path.
    backends::Directory root = backends::current_directory;
    /// Length of the root's name in each path, with the slash after it; npos: the root was removed.
    std::size_t relative_path_begin = 0;
    std::uint64_t device_number = 0;  ///< number of the block device that the files must be; 0 = they are files
    /// Path of the k-th file into a string that is used again and again (operations by name).
    std::function<void(std::uint64_t, std::string&)> set_path;
    std::shared_ptr<TreeJob> tree;  ///< operations on a tree; `files` is then how many operations
    std::shared_ptr<const patterns::TaskOperations> replay;  ///< op replay: what this task does with its `files`
    std::shared_ptr<const TrainingJob> training;             ///< op train
    bool shared_file = false;
    bool verify = false;
    bool intra_barriers = false;
    bool is_timed = true;  ///< false: verification pass, no stop rules
    int max_slices = 512;
    std::int64_t slice_ns = 1'000'000;  ///< first width of a slice
    const void* mpi_module = nullptr;
    /// Where the buffers of this stream lie, one over the other with those of all streams that have the same: for a
    /// backend that moves no bytes. Empty: each has its own.
    std::span<std::byte> memory;
    /// Reads the layout of a file; empty where the file system has none.
    StripeQuery query_stripes;
    /// Counts operations by target. Empty: each stream has its own meter. Streams that share one never
    /// run at the same time and have one clock.
    std::shared_ptr<meters::TargetMeter> target_meter;
};

/// Runs a stream. `prepare` may allocate, open nothing and throw std::runtime_error; `run` is timed and reports errors
/// through the team's control block.
class TaskStream {
 public:
    virtual ~TaskStream() = default;
    virtual void run() = 0;
    /// Optional features that were missing: the backend worked without them (Channel::missing_features).
    virtual std::vector<std::string> missing_features() const = 0;
    /// Which targets served its operations. Only of streams that read and write data files.
    virtual meters::TargetsServed targets() const { return {}; }
};

}  // namespace sonde::workloads
