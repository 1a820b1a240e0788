// SPDX-License-Identifier: Apache-2.0
// Members of `data`: files, access, I/O, payload and the schedule of the paced backend.
#include "plan/declare_data.hpp"

#include "plan/declare_amount.hpp"
#include "plan/value_kinds.hpp"

#include <bit>

namespace sonde::plan {
namespace {

using namespace choices;

bool is_plain_file_name(const std::string& name) {
    return !name.empty() && name.size() <= 128 && name[0] != '.' &&
           name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

void describe_size(Visitor& visitor, TransferSize& entry) {
    visitor.member("size", entry.size, BytesKind{}, "bytes of an operation", required);
    visitor.member("percent", entry.percent, NumberKind{0.0, 100.0}, "of the operations; the sum is 100", required);
}

void describe_step(Visitor& visitor, Paced::RateStep& step) {
    visitor.member("at", step.begin, DurationKind{}, "since the start of the phase", required_by_schema);
    visitor.member("rate", step.rate, RateKind{}, "bytes per second and task from then on", required);
}

void describe_delays(Visitor& visitor, Paced::Delays& delays) {
    visitor.member("create", delays.create, DurationKind{}, "creating a file");
    visitor.member("transfer", delays.transfer, DurationKind{},
                   "transferring bytes; `latency` also applies to operations without bytes");
    visitor.member("close", delays.close, DurationKind{}, "closing a file");
    visitor.member("sync", delays.sync, DurationKind{}, "an fsync");
    visitor.member("first_task_only", delays.first_task_only, FlagKind{},
                   "only task 0 is slow; this applies to `latency` too");
}

void describe_files(Visitor& visitor, Files& files) {
    constexpr TextRule name_rule{
        .accepts = is_plain_file_name,
        .error_text = "must be a plain file name of 1 to 128 bytes without '/' and without a leading dot"};
    constexpr TextRule path_rule{.accepts =
                                     [](const std::string& path) {
                                         return !path.empty() && path.back() != '/' &&
                                                path.find('\0') == std::string::npos;
                                     },
                                 .error_text = "does not name a file",
                                 .min_length = 1};
    constexpr TextRule directory_rule{.accepts =
                                          [](const std::string& path) {
                                              return !path.empty() && path[0] == '/' &&
                                                     path.find('\0') == std::string::npos;
                                          },
                                      .error_text = "is not the path of a directory from the root",
                                      .min_length = 1};
    visitor.member("mapping", files.mapping, choice(mappings), "which tasks share a file");
    visitor.member("group_size", files.group_size, IntegerKind(1, 1 << 24), "mapping per_group: tasks per file", unset);
    visitor.member("count", files.count, IntegerKind(1, 100'000'000), "mapping many: files per task");
    visitor.member("directories", files.directories, choice(directory_kinds), "which tasks share a directory");
    visitor.member("name", files.name, TextKind(name_rule), "base name of the data files");
    visitor.member(
        "paths", files.paths, TextsKind(path_rule),
        "paths of the files instead of a run directory, named as IOR names them (path.00000007 with mapping "
        "per_task); only phases with op = remove remove them. The files of mapping per_task or per_group use "
        "several paths in turn. Needs target.use_existing",
        unset);
    visitor.member("across", files.across, TextsKind(directory_rule),
                   "directories of further targets: the files of mapping per_task, per_group or many are distributed "
                   "in turn over the run directory and a directory of its name in each of these",
                   unset);
    describe_suffix(visitor, files);
}

}  // namespace

void describe_suffix(Visitor& visitor, Files& files) {
    constexpr TextRule rule{
        .accepts =
            [](const std::string& text) { return text.find_first_of(std::string("/\0", 2)) == std::string::npos; },
        .error_text = "must be the end of a file name, without '/'"};
    visitor.member("suffix", files.suffix, TextKind(rule),
                   "end of the names of the phase's files; with data.files.paths only");
}

void describe(Visitor& visitor, Distribution& distribution) {
    visitor.member("kind", distribution.kind, choice(distributions),
                   "zipf and pareto: few slots get most accesses and lie anywhere in the range (scope file: the same "
                   "slots for all tasks); normal: the middle of the range gets most",
                   required);
    visitor.member("theta", distribution.theta, NumberKind{0.01, 10.0},
                   "zipf: slot of rank r is drawn with probability proportional to 1 / r^theta; default: 1.2");
    visitor.member("share", distribution.share, NumberKind{0.001, 0.5},
                   "pareto: this fraction of the slots gets 1 - share of the accesses; default: 0.2 (80 % of the "
                   "accesses to 20 % of the slots)");
    visitor.member("deviation", distribution.deviation, NumberKind{0.001, 1.0},
                   "normal: standard deviation as a fraction of the range; default: 0.1");
}

void describe(Visitor& visitor, Access& access) {
    visitor.member("transfer", access.transfer, BytesKind{}, "bytes per operation");
    visitor.member("block", access.block, BytesKind{},
                   "contiguous bytes per task and segment; a multiple of transfer; default: transfer", computed);
    visitor.when_reading([&access](const Reader& in) {
        if (!in.has("block")) {
            access.block = access.transfer;
        }
    });
    visitor.member("segments", access.segments, IntegerKind(1, INT64_MAX),
                   "repetitions of the (tasks x block) pattern; exactly one of segments and volume",
                   {.replaces = {"volume"}});
    visitor.member("volume", access.volume, AmountKind{},
                   "bytes to transfer; segments = ceil(volume of one task / block)", {.replaces = {"segments"}});
    visitor.when_reading([&access](const Reader& in) {
        if (access.segments && access.volume) {
            in.fail("segments", "and volume exclude each other: keep one");
        }
        if (!access.segments && !access.volume) {
            access.segments = 1;
        }
    });
    visitor.member("order", access.order, choice(orders), "order of the transfers of a task");
    visitor.member("scope", access.scope, choice(permutation_scopes),
                   "range of a permutation: one block (the same in every segment), all slots of the task, or all slots "
                   "of the file, distributed to its tasks without replacement");
    visitor.member("stride", access.stride, BytesKind{},
                   "order stride: distance between the starts of successive transfers");
    visitor.member("gap", access.gap, BytesKind{}, "unused bytes after every block");
    visitor.member("offset", access.offset, BytesKind{}, "first byte used in each file");
    visitor.member("seed", access.seed, IntegerKind(0, INT64_MAX), "other seeds, other random orders");
    visitor.member("within", access.within, BytesKind{},
                   "order random_replace: offsets are drawn from this many bytes of each file after offset, whatever "
                   "the volume; a multiple of transfer. For existing files of any size");
    visitor.list("sizes", access.sizes,
                 "order random_replace: mixed transfer sizes. Each operation draws its size and lies anywhere in its "
                 "slot of transfer bytes, at a multiple of its size; transfer is the largest of them",
                 {.min_entries = 2}, describe_size);
    visitor.table("distribution", access.distribution,
                  "order random_replace: how often each slot is drawn; absent: all equally often", true);
    visitor.member("read_ratio", access.read_ratio, NumberKind{0.0, 1.0}, "op mixed: fraction of reads");
}

void describe(Visitor& visitor, Io& io) {
    visitor.member("direct", io.direct, FlagKind{}, "O_DIRECT; statx states the alignment");
    visitor.member("sync", io.sync_flag, choice(sync_flags), "O_DSYNC or O_SYNC on every write");
    visitor.member("fsync", io.fsync, choice(fsync_modes),
                   "end: inside the transfer interval; end_timed_separately: after it, with its own time");
    visitor.member("preallocate", io.preallocate, choice(preallocations),
                   "truncate: set the size; fallocate: reserve blocks and size; unwritten: reserve blocks beyond the "
                   "size (FALLOC_FL_KEEP_SIZE)");
    visitor.member("queue_depth", io.queue_depth, IntegerKind(1, 4096), "operations in flight per task");
    visitor.member("collective", io.collective, FlagKind{}, "mpiio, hdf5, pnetcdf: collective calls");
    visitor.member("view", io.view, FlagKind{}, "mpiio: address the data through a file view");
    visitor.member("registered", io.registered, FlagKind{}, "io_uring: register buffers and files");
    visitor.member("sqpoll", io.sqpoll, FlagKind{},
                   "io_uring: a thread of the kernel polls for operations (IORING_SETUP_SQPOLL); it occupies a "
                   "processor for each task");
    visitor.member("iopoll", io.iopoll, FlagKind{},
                   "io_uring: completions are polled from the device (IORING_SETUP_IOPOLL): needs direct and a device "
                   "with queues for it");
    visitor.member("continue_short", io.continue_short, FlagKind{},
                   "continue a call that transferred fewer bytes than requested; false: it is an error");
    visitor.member("pause", io.pause, DurationKind{},
                   "idle time after every operation: excluded from latencies, included in rates");
    visitor.member("rate_limit", io.rate_limit, RateKind{},
                   "bytes per second that a task starts at most; the latency of an operation begins when it is due");
    visitor.member("iops_limit", io.iops_limit, NumberKind{0.001, 1e9},
                   "operations per second that a task starts at most; the latency of an operation begins when it is "
                   "due");
    visitor.member("gpus", io.gpus, IntegersKind(true),
                   "numbers of GPUs in whose memory the data lies; tasks use them in turn. Each read is copied there "
                   "from a pinned buffer of the host, each write from there; the copies belong to the operation",
                   unset);
    visitor.member("hints", io.hints, HintsKind{}, "mpiio, hdf5, pnetcdf: hints for MPI-IO", unset);
    visitor.member("chunk", io.chunk, BytesKind{},
                   "hdf5: bytes of a chunk of each new dataset, a multiple of 8; 0: datasets are contiguous");
    visitor.member("alignment", io.alignment, BytesKind{},
                   "hdf5: objects of at least so many bytes begin at a multiple of it in the file; 0: HDF5's default");
    visitor.member("collective_metadata", io.collective_metadata, FlagKind{},
                   "hdf5: metadata is read and written by collective calls");
}

void describe(Visitor& visitor, Payload& payload) {
    visitor.member("kind", payload.kind, choice(payload_kinds),
                   "stamped: incompressible content that is a function of seed, file and offset, with a stamp in every "
                   "4 KiB; random: every byte generated anew; zero: zeros; ior_*: the data packets of IOR with seed as "
                   "its signature (-G)");
    visitor.member("seed", payload.seed, IntegerKind(0, INT64_MAX), "other seeds, other content");
    visitor.member("compressible", payload.compressible, NumberKind{0.0, 1.0},
                   "fraction of every 64 bytes that is zero");
    visitor.member("duplicates", payload.duplicates, NumberKind{0.0, 1.0}, "fraction of 4 KiB granules that repeat");
    visitor.member("period", payload.period, BytesKind{},
                   "stamped: number of bytes after which content repeats except for the stamps; a power of two from 4 "
                   "KiB to 64 MiB. Default: 256 KiB, or 1 MiB for transfers from 256 KiB. Use more for storage that "
                   "compresses larger pieces; 4 KiB is one buffer, as in many benchmarks",
                   unset);
    visitor.when_reading([&payload](const Reader& in) {
        if (in.has("period") &&
            (!std::has_single_bit(payload.period) || payload.period < 4096 || payload.period > (64U << 20U))) {
            in.fail("period", "must be a power of two from 4 KiB to 64 MiB");
        }
    });
}

void describe(Visitor& visitor, Paced& paced) {
    visitor.member("virtual_clock", paced.virtual_clock, FlagKind{}, "false: sleep until the scheduled end");
    visitor.member("latency", paced.latency, DurationKind{}, "added to every operation");
    std::optional<double> rate;
    visitor.member("rate", rate, RateKind{}, "constant rate per task; short form of a schedule of one step",
                   {.replaces = {"schedule"}});
    visitor.list("schedule", paced.schedule, "rates from times on", {.min_entries = 1, .replaces = {"rate"}},
                 describe_step);
    visitor.when_reading([&](const Reader& in) {
        if (rate && !paced.schedule.empty()) {
            in.fail("schedule", "and rate exclude each other: keep one");
        }
        if (rate) {
            paced.schedule.push_back({0, *rate});
        }
        for (std::size_t i = 0; i < paced.schedule.size(); ++i) {
            if (i == 0 ? paced.schedule[0].begin != 0 : paced.schedule[i].begin <= paced.schedule[i - 1].begin) {
                in.fail("schedule", "must begin at 0 and have ascending times");
            }
        }
    });
    visitor.member("ramp", paced.ramp, FlagKind{}, "interpolate the rate linearly between steps");
    visitor.member("slow_tasks", paced.slow_tasks, TaskFactorsKind{},
                   "task number -> factor by which its rate is divided", unset);
    visitor.table("delays", "time of each call in addition to the schedule",
                  [&paced](Visitor& members) { describe_delays(members, paced.delays); });
    visitor.member("fail_after", paced.fail_after, IntegerKind(0, INT64_MAX),
                   "operations per task after which each one fails");
    visitor.member("fail_errno", paced.fail_errno, IntegerKind(1, 133), "error number of failing operations");
}

void describe_backend(Visitor& visitor, Data& data) {
    visitor.member("backend", data.backend, TextKind{},
                   "interface through which bytes reach storage; trees need one with names: posix, null or paced");
}

void describe_verify(Visitor& visitor, Data& data) {
    visitor.member("verify", data.verify, choice(verify_modes),
                   "on_read: compare what a read phase returned (never timed); readback: read everything back after a "
                   "write phase, untimed");
}

void describe(Visitor& visitor, Data& data) {
    describe_backend(visitor, data);
    visitor.table("files", "which files the tasks use",
                  [&data](Visitor& members) { describe_files(members, data.files); });
    visitor.table("access", data.access, "which bytes of the files the tasks access, in which order");
    visitor.table("io", data.io, "how the calls are made");
    visitor.table("payload", data.payload, "what is written");
    describe_verify(visitor, data);
    visitor.table("paced", data.paced, "the known schedule of the backend `paced`");
}

}  // namespace sonde::plan
