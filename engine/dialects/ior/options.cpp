// SPDX-License-Identifier: Apache-2.0
#include "dialects/ior/options.hpp"

#include "dialects/ior/hints.hpp"
#include "dialects/number.hpp"
#include "plan/plan_error.hpp"

#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <climits>

namespace sonde::dialects::ior {
namespace {

using plan::PlanError;
using Takes = IorOption::ArgumentCount;

std::int64_t read_whole_number(const std::string& text, const std::string& option) {
    return read_scaled_number(text, option, INT_MIN, INT_MAX);
}

template <auto Member>
void set_flag(IorSettings& settings, const std::string& value) {
    settings.*Member = read_whole_number(value, "the number of a flag") != 0;
}
template <auto Member>
void set_level(IorSettings& settings, const std::string& value) {
    settings.*Member = static_cast<int>(read_whole_number(value, "the number of a flag"));
}
template <auto Member>
void set_size(IorSettings& settings, const std::string& value) {
    settings.*Member = read_scaled_number(value, "a size");
}
template <auto Member>
void set_number(IorSettings& settings, const std::string& value) {
    if (value.find('.') != std::string::npos) {
        settings.add_note(value + " is taken as " + std::to_string(read_whole_number(value, "a number")) +
                          ": IOR cuts decimals off");
    }
    settings.*Member =
        static_cast<std::remove_reference_t<decltype(settings.*Member)>>(read_whole_number(value, "a number"));
}
template <auto Member>
void set_text(IorSettings& settings, const std::string& value) {
    settings.*Member = value;
}

/// A label in the summary. IOR shows -1 for text that is no number.
void set_reference(IorSettings& settings, const std::string& value) {
    try {
        set_number<&IorSettings::reference>(settings, value);
    } catch (const PlanError&) {
        settings.reference = -1;
        settings.add_note("-A " + value + " is not a number: the reference number is -1, as in IOR");
    }
}

std::string to_lower(std::string_view text) {
    std::string small(text);
    std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
    return small;
}

void set_api(IorSettings& settings, const std::string& value) {
    static constexpr std::string_view here[] = {"POSIX", "MPIIO", "HDF5", "NCMPI", "MMAP", "AIO", "DUMMY"};
    for (const std::string_view name : here) {
        if (to_lower(name) == to_lower(value)) {
            settings.api = name;
            return;
        }
    }
    static constexpr std::string_view elsewhere[] = {"PMDK",    "DFS",     "HDFS",   "IME",    "S3",       "S3-4c",
                                                     "S3-plus", "S3-EMC",  "RADOS",  "CEPHFS", "S3-libs3", "Gfarm",
                                                     "CHFS",    "FINCHFS", "LIBNFS", "S3-curl"};
    for (const std::string_view name : elsewhere) {
        if (to_lower(name) == to_lower(value)) {
            throw_argument_error(
                "the API " + std::string(name) +
                " is not built into Sonde: use POSIX, MPIIO, HDF5, NCMPI, MMAP, AIO or DUMMY, or write a backend "
                "for it "
                "(`tools/new-backend " +
                to_lower(name) + "` in the sources of Sonde begins one)");
        }
    }
    throw_argument_error("there is no API " + value + ": use POSIX, MPIIO, HDF5, NCMPI, MMAP, AIO or DUMMY");
}

void set_packet(IorSettings& settings, const std::string& value) {
    switch (value.empty() ? '\0' : value[0]) {
        case 't':
            settings.packet = Packet::timestamp;
            return;
        case 'o':
            settings.packet = Packet::offset;
            return;
        case 'i':
            settings.packet = Packet::incompressible;
            return;
        case 'r':
            settings.packet = Packet::random;
            return;
        default:
            throw_argument_error("-l " + value +
                                 " is no type of data packet: use timestamp, offset, incompressible or random");
    }
}

void set_format(IorSettings& settings, const std::string& value) {
    const std::string small = to_lower(value);
    if (small != "default" && small != "json" && small != "csv") {
        throw_argument_error("summaryFormat=" + value + " is not known: use default, JSON or CSV");
    }
    settings.format = small == "json" ? Format::json : small == "csv" ? Format::csv : Format::human;
}

void set_memory_per_node(IorSettings& settings, const std::string& value) {
    const auto bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    double share = 0;
    if (!value.empty() && value.back() == '%') {
        share = static_cast<double>(read_whole_number(value.substr(0, value.size() - 1), "-M")) / 100;
    } else {
        share = static_cast<double>(read_scaled_number(value, "-M")) / bytes;
    }
    if (share < 0 || share > 0.95) {
        throw_argument_error("-M " + value +
                             " is not between nothing and 95 % of a node's memory: the rest is needed to run");
    }
    settings.memory_share = share;
    settings.memory_per_task = 0;
}

void set_memory_per_task(IorSettings& settings, const std::string& value) {
    settings.memory_per_task = read_scaled_number(value, "memoryPerTask");
    settings.memory_share = 0;
}

void set_direct(IorSettings& settings, const std::string& value) {
    settings.direct = read_whole_number(value, "posix.odirect") != 0;
}

void set_old_direct(IorSettings& settings, const std::string& value) {
    set_direct(settings, value);
    settings.add_note("-B is from IOR before 3.3; it is taken as --posix.odirect (O_DIRECT)");
}

void set_hints_file(IorSettings& settings, const std::string& value) {
    settings.hints = read_hints_of_file(value, settings.hints);
}

void set_strided(IorSettings&, const std::string&) {
    throw_argument_error(
        "--mpiio.useStridedDatatype is not built here: IOR itself marks it as not working; use --mpiio.useFileView");
}

template <char const* Text>
void add_note_if_set(IorSettings& settings, const std::string& value) {
    if (value != "0") {
        settings.add_note(Text);
    }
}

void refuse_own_datasets(IorSettings&, const std::string& value) {
    if (value != "0") {
        throw_argument_error(
            "--hdf5.individualDataSets is not built here: IOR itself refuses it; use -F for a file per task");
    }
}

constexpr char note_ncmpi[] = "--ncmpi.preallocate, useStridedDatatype and useFileView change nothing, as in IOR";
constexpr char note_no_fill[] = "--hdf5.noFill changes nothing: HDF5 fills only datasets that have a fill value";
constexpr char note_granularity[] = "--aio.granularity is not used: io_uring hands every operation over at once";
constexpr char note_madvise[] = "--mmap.madv_… are not used: pages are mapped without advice";
constexpr char note_range_locks[] = "--posix.rangelocks is not used: no locks are taken around transfers";

/// IOR takes one number. Here several are separated as paths are in -o, because commas separate directives.
void set_gpus(IorSettings& settings, const std::string& value) {
    settings.gpus.clear();
    for (std::size_t from = 0; from <= value.size();) {
        const std::size_t end = std::min(value.find('@', from), value.size());
        const std::int64_t gpu = read_scaled_number(value.substr(from, end - from), "GPUid", -1, INT_MAX);
        if (gpu >= 0) {
            settings.gpus.push_back(static_cast<int>(gpu));
        }
        from = end + 1;
    }
}

void refuse_dual(IorSettings&, const std::string& value) {
    if (value != "0") {
        throw_argument_error(
            "-y (one mount point per processor socket) is not built into Sonde: name the mount points with -F -o "
            "path1@path2, which deals them to the tasks in turn");
    }
}

void refuse_ignored_locks(IorSettings&, const std::string& value) {
    if (value != "0") {
        throw_argument_error(
            "--posix.lustre.ignorelocks is not built into Sonde: tasks that write without Lustre's locks may lose "
            "data");
    }
}

void refuse_gpfs(IorSettings&, const std::string& value) {
    if (value != "0") {
        throw_argument_error(
            "the GPFS options need the gpfs_fcntl library, which is not built into Sonde: leave --posix.gpfs.… out");
    }
}

const IorOption ior_options[] = {
    {'a', "", "api", Takes::value, "API for I/O [POSIX|MPIIO|HDF5|MMAP|AIO|DUMMY]", set_api},
    {'A', "", "refNum", Takes::value, "reference number to show in the summary", set_reference},
    {'b', "", "blockSize", Takes::value, "contiguous bytes of a task in a segment (4k, 2m, 1g)",
     set_size<&IorSettings::block>},
    {'B', "", "", Takes::flag, "O_DIRECT, as before IOR 3.3 (now --posix.odirect)", set_old_direct},
    {'c', "collective", "collective", Takes::flag, "collective I/O (MPIIO, HDF5)", set_flag<&IorSettings::collective>},
    {'C', "", "reorderTasks", Takes::flag, "read what a task of the next node wrote", set_level<&IorSettings::reorder>},
    {0, "", "reorderTasksConstant", Takes::value, "", set_level<&IorSettings::reorder>},
    {'d', "", "interTestDelay", Takes::value, "seconds before each write and read",
     set_number<&IorSettings::test_delay>},
    {'D', "", "deadlineForStonewalling", Takes::value, "seconds after which a write or read stops",
     set_number<&IorSettings::deadline>},
    {0, "", "stoneWallingWearOut", Takes::value, "1: after the deadline all tasks reach the count of the fastest",
     set_flag<&IorSettings::wear_out>},
    {0, "", "stoneWallingWearOutIterations", Takes::value, "stop after so many transfers of a task",
     set_size<&IorSettings::wear_out_iterations>},
    {0, "", "stoneWallingStatusFile", Takes::value, "keeps the transfers of a stonewalled write for a later read",
     set_text<&IorSettings::status_file>},
    {0, "", "minTimeDuration", Takes::value, "seconds to go on for, from the beginning of the file again",
     set_number<&IorSettings::min_seconds>},
    {'e', "", "fsync", Takes::flag, "fsync after the last write", set_flag<&IorSettings::fsync>},
    {'E', "", "useExistingTestFile", Takes::flag, "do not remove the file before writing",
     set_flag<&IorSettings::use_existing>},
    {'F', "", "filePerProc", Takes::flag, "a file per task", set_flag<&IorSettings::file_per_process>},
    {'g', "", "intraTestBarriers", Takes::flag, "barriers between open, transfers and close",
     set_flag<&IorSettings::intra_barriers>},
    {'G', "", "setTimeStampSignature", Takes::value, "signature of the content", set_size<&IorSettings::signature>},
    {'i', "", "repetitions", Takes::value, "repetitions", set_number<&IorSettings::repetitions>},
    {'j', "", "outlierThreshold", Takes::value, "warn of tasks so many seconds off the mean",
     set_number<&IorSettings::outlier_seconds>},
    {'k', "", "keepFile", Takes::flag, "keep the files", set_flag<&IorSettings::keep>},
    {'K', "", "keepFileWithError", Takes::flag, "keep files whose content was wrong",
     set_flag<&IorSettings::keep_with_error>},
    {'l', "dataPacketType", "dataPacketType", Takes::value, "content [timestamp|offset|incompressible|random]",
     set_packet},
    {'m', "", "multiFile", Takes::flag, "a file for each repetition", set_flag<&IorSettings::multiple_files>},
    {'M', "", "memoryPerNode", Takes::value, "memory to hold on each node (2g, 75%)", set_memory_per_node},
    {0, "", "memoryPerTask", Takes::value, "memory to hold for each task", set_memory_per_task},
    {'N', "", "numTasks", Takes::value, "only the first so many tasks take part", set_number<&IorSettings::tasks>},
    {0, "", "numNodes", Takes::value, "number of nodes to show", set_number<&IorSettings::nodes>},
    {0, "", "numTasksOnNode0", Takes::value, "tasks of a node, for -C and -Z",
     set_number<&IorSettings::tasks_on_node0>},
    {'o', "", "testFile", Takes::value, "the file; with -F several: a@b", set_text<&IorSettings::file>},
    {'Q', "", "taskPerNodeOffset", Takes::value, "nodes to move on by for -C (exactly) and -Z (at least)",
     set_number<&IorSettings::task_offset>},
    {'r', "", "readFile", Takes::flag, "read", set_flag<&IorSettings::read>},
    {'R', "", "checkRead", Takes::flag, "read and compare", set_flag<&IorSettings::check_read>},
    {'s', "", "segmentCount", Takes::value, "segments", set_size<&IorSettings::segments>},
    {'t', "", "transferSize", Takes::value, "bytes of a transfer (4k, 2m, 1g)", set_size<&IorSettings::transfer>},
    {'T', "", "maxTimeDuration", Takes::value, "minutes after which no further write or read begins",
     set_number<&IorSettings::max_minutes>},
    {'u', "", "uniqueDir", Takes::flag, "a directory per task (with -F)", set_flag<&IorSettings::unique_directory>},
    {'v', "", "verbose", Takes::flag, "say more; may be repeated", set_level<&IorSettings::verbose>},
    {'w', "", "writeFile", Takes::flag, "write", set_flag<&IorSettings::write>},
    {'W', "", "checkWrite", Takes::flag, "read back and compare, not timed", set_flag<&IorSettings::check_write>},
    {'x', "", "singleXferAttempt", Takes::flag, "a transfer that moves less than asked is an error",
     set_flag<&IorSettings::single_attempt>},
    {'X', "", "reorderTasksRandomSeed", Takes::value, "seed of -Z; below zero: another for each repetition",
     set_number<&IorSettings::reorder_seed>},
    {'y', "", "dualMount", Takes::flag, "", refuse_dual},
    {'Y', "", "fsyncPerWrite", Takes::flag, "fsync after every write", set_flag<&IorSettings::fsync_per_write>},
    {'z', "", "randomOffset", Takes::flag, "transfers in random order; twice: at random places",
     set_level<&IorSettings::random_offset>},
    {'Z', "", "reorderTasksRandom", Takes::flag, "read what a random task wrote; twice: a permutation",
     set_level<&IorSettings::reorder_random>},
    {0, "randomPrefill", "", Takes::value, "before writing with -z, fill the files in transfers of this size",
     set_size<&IorSettings::random_prefill>},
    {0, "random-offset-seed", "", Takes::value, "seed of -z", set_number<&IorSettings::random_offset_seed>},
    {0, "warningAsErrors", "warningAsErrors", Takes::flag, "a warning ends the program",
     set_flag<&IorSettings::warnings_are_errors>},
    {0, "dryRun", "", Takes::flag, "show the test, do nothing", set_flag<&IorSettings::dry_run>},
    {0, "", "interIODelay", Takes::value, "microseconds after every transfer",
     set_number<&IorSettings::operation_delay>},
    {0, "", "summaryFile", Takes::value, "write the results there", set_text<&IorSettings::summary_file>},
    {0, "", "summaryFormat", Takes::value, "default, JSON or CSV", set_format},
    {0, "", "summaryAlways", Takes::value, "1: the long summary after each test too",
     set_flag<&IorSettings::summary_always>},
    {0, "", "saveRankPerformanceDetailsCSV", Takes::value, "times of each task as CSV",
     set_text<&IorSettings::rank_details_file>},
    {0, "", "savePerOpDataCSV", Takes::value, "a line for each transfer, files <this>-<repetition>-<rank>.csv",
     set_text<&IorSettings::operations_prefix>},
    {0, "", "platform", Takes::value, "", set_text<&IorSettings::platform>},
    {0, "", "debug", Takes::value, "", set_text<&IorSettings::debug>},
    {0, "posix.odirect", "useO_DIRECT", Takes::flag, "POSIX: O_DIRECT", set_direct},
    {0, "posix.rangelocks", "", Takes::flag, "", add_note_if_set<note_range_locks>},
    {0, "aio.max-pending", "", Takes::value, "AIO: transfers in flight (128)", set_number<&IorSettings::aio_pending>},
    {0, "aio.granularity", "", Takes::value, "", add_note_if_set<note_granularity>},
    {0, "dummy.delay-xfer", "", Takes::value, "DUMMY: microseconds a transfer takes",
     set_number<&IorSettings::dummy_transfer_us>},
    {0, "dummy.delay-create", "", Takes::value, "DUMMY: microseconds a create takes",
     set_number<&IorSettings::dummy_create_us>},
    {0, "dummy.delay-close", "", Takes::value, "DUMMY: microseconds a close takes",
     set_number<&IorSettings::dummy_close_us>},
    {0, "dummy.delay-sync", "", Takes::value, "DUMMY: microseconds an fsync takes",
     set_number<&IorSettings::dummy_sync_us>},
    {0, "dummy.delay-only-rank0", "", Takes::flag, "DUMMY: task 0 only is delayed",
     set_flag<&IorSettings::dummy_only_first>},
    {0, "mpiio.hintsFileName", "", Takes::value, "MPIIO: file of hints (IOR_HINT__MPI__name=value)", set_hints_file},
    {0, "mpiio.showHints", "", Takes::flag, "MPIIO: show the hints that are given",
     set_flag<&IorSettings::mpi_show_hints>},
    {0, "mpiio.preallocate", "", Takes::flag, "MPIIO: preallocate the file", set_flag<&IorSettings::mpi_preallocate>},
    {0, "mpiio.useFileView", "", Takes::flag, "MPIIO: address through a file view", set_flag<&IorSettings::mpi_view>},
    {0, "mpiio.useStridedDatatype", "", Takes::flag, "", set_strided},
    {0, "hdf5.hintsFileName", "", Takes::value, "HDF5: file of hints, as for MPIIO", set_hints_file},
    {0, "hdf5.showHints", "", Takes::flag, "HDF5: show the hints that are given",
     set_flag<&IorSettings::mpi_show_hints>},
    {0, "hdf5.collectiveMetadata", "", Takes::flag, "HDF5: metadata by collective calls",
     set_flag<&IorSettings::hdf_collective_metadata>},
    {0, "hdf5.individualDataSets", "", Takes::flag, "", refuse_own_datasets},
    {0, "hdf5.setAlignment", "", Takes::value, "HDF5: alignment in bytes (8, 4k, 2m, 1g)",
     set_size<&IorSettings::hdf_alignment>},
    {0, "hdf5.noFill", "", Takes::flag, "", add_note_if_set<note_no_fill>},
    {0, "hdf5.chunkSize", "", Takes::value, "HDF5: elements of 8 bytes in a chunk; 0: no chunks",
     set_size<&IorSettings::hdf_chunk>},
    {0, "ncmpi.hintsFileName", "", Takes::value, "NCMPI: file of hints, as for MPIIO", set_hints_file},
    {0, "ncmpi.showHints", "", Takes::flag, "NCMPI: show the hints that are given",
     set_flag<&IorSettings::mpi_show_hints>},
    {0, "ncmpi.preallocate", "", Takes::flag, "", add_note_if_set<note_ncmpi>},
    {0, "ncmpi.useStridedDatatype", "", Takes::flag, "", add_note_if_set<note_ncmpi>},
    {0, "ncmpi.useFileView", "", Takes::flag, "", add_note_if_set<note_ncmpi>},
    {0, "mmap.madv_dont_need", "", Takes::flag, "", add_note_if_set<note_madvise>},
    {0, "mmap.madv_pattern", "", Takes::flag, "", add_note_if_set<note_madvise>},
    {0, "posix.lustre.stripecount", "", Takes::value, "POSIX: targets of a new file on Lustre (-1: all)",
     set_number<&IorSettings::stripe_count>},
    {0, "posix.lustre.stripesize", "", Takes::value, "POSIX: bytes on one target before the next one's turn",
     set_size<&IorSettings::stripe_size>},
    {0, "posix.lustre.startost", "", Takes::value, "POSIX: index of its first target",
     set_number<&IorSettings::stripe_start>},
    {0, "posix.lustre.pool", "", Takes::value, "POSIX: pool of its targets", set_text<&IorSettings::stripe_pool>},
    {0, "posix.lustre.ignorelocks", "", Takes::flag, "", refuse_ignored_locks},
    {0, "posix.beegfs.NumTargets", "", Takes::value, "POSIX: targets of a new file on BeeGFS",
     set_number<&IorSettings::stripe_count>},
    {0, "posix.beegfs.ChunkSize", "", Takes::value, "POSIX: bytes of a chunk", set_size<&IorSettings::stripe_size>},
    {0, "posix.gpfs.hintaccess", "", Takes::flag, "", refuse_gpfs},
    {0, "posix.gpfs.releasetoken", "", Takes::value, "", refuse_gpfs},
    {0, "posix.gpfs.finegrainwritesharing", "", Takes::flag, "", refuse_gpfs},
    {0, "posix.gpfs.finegrainreadsharing", "", Takes::flag, "", refuse_gpfs},
    {0, "posix.gpfs.createsharing", "", Takes::flag, "", refuse_gpfs},
    {0, "", "allocateBufferOnGPU", Takes::value, "buffers in GPU memory: 1, or 3 with GPUDirect",
     set_number<&IorSettings::gpu_memory>},
    {0, "", "GPUid", Takes::value, "number of the GPU; several for the tasks in turn: 0@1", set_gpus},
    {0, "gpuDirect", "GPUDirect", Takes::flag, "POSIX: between storage and GPU memory by cuFile",
     set_flag<&IorSettings::gpu_direct>},
};

}  // namespace

std::span<const IorOption> options() {
    return ior_options;
}

const IorOption* find_by_letter(char letter) {
    const auto match = std::find_if(std::begin(ior_options), std::end(ior_options),
                                    [&](const IorOption& o) { return o.letter == letter; });
    return match == std::end(ior_options) || letter == 0 ? nullptr : match;
}

const IorOption* find_by_long_name(std::string_view word) {
    const auto match = std::find_if(std::begin(ior_options), std::end(ior_options),
                                    [&](const IorOption& o) { return o.long_name == word; });
    return match == std::end(ior_options) || word.empty() ? nullptr : match;
}

const IorOption* find_by_directive(std::string_view directive) {
    const std::string wanted = to_lower(directive);
    for (const IorOption& option : ior_options) {
        if (!option.directive.empty() && to_lower(option.directive) == wanted) {
            return &option;
        }
    }
    return find_by_long_name(directive.starts_with("--") ? directive.substr(2) : directive);
}

}  // namespace sonde::dialects::ior
