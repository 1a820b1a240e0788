// SPDX-License-Identifier: Apache-2.0
// The plan as a tree of immutable values. The JSON form is schema/plan.
#pragma once

#include "plan/meta.hpp"
#include "plan/operations.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sonde::plan {

using Bytes = std::uint64_t;
using Nanoseconds = std::int64_t;

/// A volume: bytes, or a multiple of the memory of one node (known at run time).
struct Amount {
    enum class Basis { bytes, node_memory };
    enum class Granularity { task, node, total };
    Basis of = Basis::bytes;
    Bytes bytes = 0;                      ///< used when of == bytes
    double factor = 1.0;                  ///< used when of == node_memory
    Granularity per = Granularity::task;  ///< scope of the amount, which is divided evenly among its tasks
};

enum class Mapping { shared, per_task, per_node, per_group, many };
enum class DirectoryMapping { one, per_task, per_node };
enum class AccessOrder { sequential, reverse, stride, random_permute, random_replace };
enum class PermutationScope { block, task, file };
enum class SyncFlag { none, o_dsync, o_sync };  ///< of open()
enum class Fsync { none, per_op, end, end_timed_separately };
enum class Preallocate { none, truncate, fallocate, unwritten };
/// The ior_* kinds are the data packets of IOR (payload/ior_pattern.hpp).
enum class PayloadKind { stamped, random, zero, ior_timestamp, ior_offset, ior_incompressible, ior_random };
enum class Verify { none, on_read, readback, both };

/// Striping of new files. The file system chooses absent members.
struct Striping {
    std::optional<std::int64_t> count;   ///< targets of a file; -1 = all
    std::optional<Bytes> size;           ///< stripe size in bytes
    std::string pool;                    ///< empty = any target
    std::optional<std::uint32_t> start;  ///< index of the target that gets the first byte
};

/// An S3 service. Credentials come from the environment, never from a plan.
struct ObjectStore {
    std::vector<std::string> endpoints;    ///< used by tasks in turn; empty: AWS_ENDPOINT_URL, or that of the region
    std::string region;                    ///< empty: AWS_REGION, or us-east-1
    bool virtual_hosts = false;            ///< the bucket is part of the host name instead of the path
    std::string ca_file;                   ///< certificates to trust; empty: AWS_CA_BUNDLE, or the system's
    int retries = 4;                       ///< of one request at most, after temporary errors
    Nanoseconds timeout = 30'000'000'000;  ///< a request ends when no byte moves for so long
};

/// The target of the run. All files lie in `path/directory`, which the engine creates and removes.
struct TargetSettings {
    std::string path;               ///< a directory, s3://bucket/prefix, or with `device` a block device
    bool device = false;            ///< the tasks access the bytes of the block device `path`, without files
    std::string directory;          ///< name below path; empty = "sonde-<run id>"
    bool keep = false;              ///< keep the files (and the manifest) after the run
    bool use_existing = false;      ///< the directory and its data files may already exist
    bool keep_manifest = true;      ///< with `keep`: also keep the manifest; false = the files then belong to the user
    Bytes min_free = 64ULL << 20U;  ///< free space required beyond the volume
    std::optional<Bytes> full_stripe;  ///< bytes, for the label of unaligned access; absent = from the mount options
    std::optional<Striping> striping;
    std::optional<ObjectStore> s3;
};

struct Tasks {
    int processes = 1;  ///< forked by the engine when no launcher started it; under a launcher: ranks
    int threads = 1;    ///< per process
    bool pin = false;   ///< bind each task thread to one core, round robin
    int active = 0;     ///< number of tasks that work, the others only take part in barriers; 0 = all
};

struct Files {
    Mapping mapping = Mapping::per_task;
    int group_size = 0;  ///< tasks per file, mapping per_group
    int count = 1;       ///< files per task, mapping many
    DirectoryMapping directories = DirectoryMapping::one;
    std::string name = "data";
    /// Not empty: paths of the files instead of a run directory; only `remove` phases remove them. One path, or several
    /// for the files of mapping per_task or per_group in turn. Names follow IOR.
    std::vector<std::string> paths;
    std::string suffix;  ///< of a phase, with `paths`: ends every file name
    /// Directories of further targets: files of tasks (or groups) are distributed in turn over the run directory and a
    /// directory of its name in each of these.
    std::vector<std::string> across;
    /// Not a member of plans: the block device of target.path, which all tasks use in place of a file.
    std::string device;
    bool is_device() const { return !device.empty(); }
    bool in_place() const { return !paths.empty() || is_device(); }
};

/// One size of mixed transfers.
struct TransferSize {
    Bytes size = 0;
    double percent = 0;  ///< of the operations
};

/// Frequencies at which order random_replace draws the slots; the formulae are in patterns/skewed_draw.hpp.
enum class DistributionKind { uniform, zipf, pareto, normal };
struct Distribution {
    DistributionKind kind = DistributionKind::uniform;
    std::optional<double> theta;      ///< zipf: the exponent
    std::optional<double> share;      ///< pareto: fraction of the slots that gets 1 - share of the accesses
    std::optional<double> deviation;  ///< normal: standard deviation as a fraction of the range
};

/// Geometry of access; the formulae are in patterns/geometry.hpp.
struct Access {
    Bytes transfer = 1ULL << 20U;
    Bytes block = 1ULL << 20U;
    std::optional<std::uint64_t> segments;  ///< exactly one of segments and volume is set
    std::optional<Amount> volume;
    AccessOrder order = AccessOrder::sequential;
    PermutationScope scope = PermutationScope::task;  ///< of a permutation
    Bytes stride = 0;                                 ///< order stride: distance between starts of successive transfers
    Bytes gap = 0;                                    ///< unused bytes after every block
    Bytes offset = 0;                                 ///< of the first byte in each file
    std::uint64_t seed = 1;
    std::optional<Bytes> within;  ///< order random_replace: offsets are drawn from this many bytes of each file
    std::optional<Distribution> distribution;  ///< order random_replace: absent = uniform
    std::vector<TransferSize> sizes;           ///< order random_replace: empty = every operation has transfer bytes
    std::optional<double> read_ratio;          ///< op mixed: share of reads, 0..1

    /// Mean bytes of one operation.
    double mean_transfer() const {
        double mean = sizes.empty() ? static_cast<double>(transfer) : 0;
        for (const TransferSize& entry : sizes) {
            mean += static_cast<double>(entry.size) * entry.percent / 100;
        }
        return mean;
    }
    /// Bytes that so many operations move; with `sizes` their expectation.
    Bytes bytes_of(std::uint64_t count) const {
        return sizes.empty() ? count * transfer
                             : static_cast<Bytes>(std::llround(static_cast<double>(count) * mean_transfer()));
    }
};

struct Io {
    bool direct = false;
    SyncFlag sync_flag = SyncFlag::none;
    Fsync fsync = Fsync::none;
    Preallocate preallocate = Preallocate::none;
    int queue_depth = 1;
    bool collective = false;           ///< mpiio, hdf5, pnetcdf
    bool view = false;                 ///< mpiio: set a file view instead of explicit offsets
    bool registered = true;            ///< io_uring: register buffers and files
    bool sqpoll = false;               ///< io_uring: a thread of the kernel takes the operations
    bool iopoll = false;               ///< io_uring: completions are polled from the device
    bool continue_short = true;        ///< short transfers are continued, not an error
    Nanoseconds pause = 0;             ///< idle time after every operation; excluded from latencies, included in rates
    std::optional<double> rate_limit;  ///< bytes per second of a task at most
    std::optional<double> iops_limit;  ///< operations per second of a task at most
    std::vector<int> gpus;  ///< the data of task t lies in the memory of gpus[t mod their number]; empty: in the host's
    std::map<std::string, std::string> hints;  ///< of MPI-IO
    Bytes chunk = 0;                           ///< hdf5: bytes of a chunk of each dataset; 0 = contiguous
    Bytes alignment = 0;                       ///< hdf5: objects of at least so many bytes begin at a multiple of it
    bool collective_metadata = false;          ///< hdf5: metadata is read and written by collective calls

    bool is_limited() const { return rate_limit || iops_limit; }
};

struct Payload {
    PayloadKind kind = PayloadKind::stamped;
    std::uint64_t seed = 1;
    double compressible = 0.0;  ///< share of every 64 bytes that is zero, 0..1
    double duplicates = 0.0;    ///< share of 4 KiB granules that repeat, 0..1
    Bytes period = 0;  ///< stamped: bytes after which content repeats except for stamps; 0 = from the transfer size
};

/// The `paced` backend: operations end on an exactly known schedule.
struct Paced {
    struct RateStep {
        Nanoseconds begin = 0;  ///< since the start of the phase
        double rate = 0;        ///< bytes per second and task from here on
    };
    bool virtual_clock = true;         ///< false: sleep until the scheduled end
    Nanoseconds latency = 0;           ///< added to every operation
    std::vector<RateStep> schedule;    ///< ascending `begin`; rates between steps are constant
    bool ramp = false;                 ///< interpolate the rate linearly between steps instead
    std::map<int, double> slow_tasks;  ///< task -> factor by which its rate is divided
    struct Delays {                    ///< time of each call in addition to the schedule; zero = none
        Nanoseconds create = 0, transfer = 0, close = 0, sync = 0;
        bool first_task_only = false;  ///< and `latency` too: only task 0 is slow
    } delays;
    std::optional<std::uint64_t> fail_after;  ///< operations per task after which each one fails
    int fail_errno = 5;                       ///< EIO
};

struct Data {
    std::string backend = "posix";
    Files files;
    Access access;
    Io io;
    Payload payload;
    Verify verify = Verify::none;
    Paced paced;
};

enum class OpenMode { truncate, overwrite, exclusive };
enum class ShiftBy { none, tasks, nodes, random, permute, list };
enum class Barrier { none, phase, intra };

/// Which task reads whose data, so that reads do not hit the writer's cache.
struct Shift {
    ShiftBy by = ShiftBy::none;
    int n = 1;
    std::uint64_t seed = 1;
    std::vector<int> owners = {};  ///< list: task -> task whose data it takes
};

struct Treatment {
    std::string kind = "sync";    ///< one that the engine offers (plan/capabilities.hpp)
    bool required = false;        ///< a failed or ineffective required treatment stops the run
    Nanoseconds time = 0;         ///< sleep
    double fraction = 0;          ///< memory_hog: share of node memory to hold, 0..1
    std::string command;          ///< command: run by /bin/sh on every node; remount: optional override
    double max_residency = 0.01;  ///< drop_page_cache, fadvise, remount: allowed share of resident pages afterwards
};

struct Stop {
    std::optional<Nanoseconds> time;          ///< run exactly this long, repeating the pattern when it ends
    std::optional<Nanoseconds> stonewall;     ///< stop at this time if the volume is not done
    bool wearout = false;                     ///< after the stonewall, all continue to the count of the fastest task
    std::optional<Nanoseconds> min_time;      ///< repeat the pattern until this time has passed
    bool first_done = false;                  ///< the first task to finish stops all (IOzone)
    std::optional<std::uint64_t> operations;  ///< limit per file and task
    std::optional<std::uint64_t> items;       ///< trees: limit of items per task
    std::string within;                       ///< trees: limit: the operations of each task in the phase of this name
};

struct DuplexStream {
    enum class TaskSubset { same, first_half, second_half };
    std::string id;
    bool write = true;
    TaskSubset tasks = TaskSubset::same;
    int file = 0;  ///< mapping many: which of the task's files
};

struct ValidityLimits {
    std::optional<Nanoseconds> min_time;
    std::optional<double> max_residency;  ///< of the data, before a read
};

/// op train: which parts of the data set change places from epoch to epoch.
enum class Shuffle { samples, files, none };

/// op train: one task is one emulated accelerator. A sample is one block of access.
struct Training {
    std::uint64_t batch_size = 1;  ///< samples
    Nanoseconds compute_time = 0;  ///< of one batch
    std::uint64_t prefetch = 2;    ///< batches that are read ahead at most
    Shuffle shuffle = Shuffle::samples;
};

/// op replay: whether the idle times between operations are repeated.
enum class ThinkTime { as_traced, none };

struct Phase {
    std::string id;
    Op op = Op::write;
    std::string data_of;     ///< id of the phase that wrote the data; empty = nearest earlier write
    std::vector<int> files;  ///< mapping many: subset of each task's files; empty = all
    OpenMode open = OpenMode::truncate;
    bool separate_process = false;
    bool measured = true;         ///< false = preparation: done, recorded, not rated
    std::string operations_file;  ///< one CSV line an operation goes to <this>-<task>.csv; empty: nowhere
    std::string replay_file;      ///< op replay: the operations (schema/operations)
    ThinkTime think_time = ThinkTime::as_traced;
    std::optional<Training> training;  ///< op train
    bool unless_mismatch = false;      ///< skipped after a verification mismatch
    Barrier barrier = Barrier::phase;
    Shift shift;
    Stop stop;
    ValidityLimits valid;
    std::vector<Treatment> before;
    std::vector<DuplexStream> streams;
    std::string data_at = "data";  ///< where the plan says what `data` holds, for messages: "data" or "phases[2]"
    Data data;  ///< the plan's data with this phase's own `backend`, `access`, `io`, `verify` merged into it
    std::optional<Meta> meta;  ///< operations on a tree: the plan's meta with the phase's own merged into it

    /// Whether its data files are made anew, so that nothing of what they held remains.
    bool makes_files() const { return op == Op::write && open != OpenMode::overwrite && !data.files.is_device(); }
};

struct Observe {
    Nanoseconds slice = 1'000'000;  ///< first width of a slice; doubles whenever max_slices are used
    int max_slices = 512;
    Nanoseconds progress = 250'000'000;  ///< between progress lines; 0 = none
};

struct Plan {
    std::string id;
    std::string title;
    TargetSettings target;
    Tasks tasks;
    Data data;
    bool has_data = true;  ///< false = the plan has trees only
    std::vector<Phase> phases;
    Observe observe;
    std::optional<Nanoseconds> time_limit;
    std::optional<Nanoseconds> begin_limit;  ///< after this time no phase that reads or writes begins
    std::string canonical;                   ///< the JSON text this plan was read from
};

}  // namespace sonde::plan
