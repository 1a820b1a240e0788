// SPDX-License-Identifier: Apache-2.0
// The rules between IOR's options. Values that IOR corrects with a warning are corrected here with the same warning.
#include "dialects/ior/arguments.hpp"
#include "plan/plan_error.hpp"

namespace sonde::dialects::ior {

void throw_argument_error(const std::string& sentence) {
    throw plan::PlanError(sentence);
}

namespace {

constexpr std::int64_t word_bytes = 8;
constexpr int max_repetitions = 10'000;

void check_sizes(const IorSettings& s) {
    const std::string sizes = "-b is " + std::to_string(s.block) + " and -t is " + std::to_string(s.transfer);
    if (s.transfer <= 0 || s.transfer % word_bytes != 0) {
        throw_argument_error("-t is " + std::to_string(s.transfer) +
                             ", but a transfer must be a multiple of 8 bytes and more than 0");
    }
    if (s.block < s.transfer || s.block % s.transfer != 0) {
        throw_argument_error(sizes + ", but a block must be a whole number of transfers");
    }
    if (s.segments < 1) {
        throw_argument_error("-s is " + std::to_string(s.segments) + ", but there must be at least one segment");
    }
    if (s.random_offset == 1 && s.block == s.transfer) {
        throw_argument_error(sizes +
                             ": -z shuffles the transfers of a block, so a block must be larger than a transfer");
    }
    if (s.random_prefill != 0 && s.random_offset == 0) {
        throw_argument_error("--randomPrefill goes with -z only");
    }
    if (s.random_prefill < 0 || (s.random_prefill != 0 && s.block % s.random_prefill != 0)) {
        throw_argument_error("--randomPrefill is " + std::to_string(s.random_prefill) +
                             ", but must divide the block (-b " + std::to_string(s.block) + ")");
    }
}

void check_stops(const IorSettings& s) {
    if (s.deadline < 0 || s.max_minutes < 0 || s.min_seconds < 0 || s.operation_delay < 0 || s.outlier_seconds < 0 ||
        s.wear_out_iterations < 0) {
        throw_argument_error(
            "-D, -T, -j, minTimeDuration, interIODelay and stoneWallingWearOutIterations cannot be below zero");
    }
    if (!s.status_file.empty() && !s.keep) {
        throw_argument_error("stoneWallingStatusFile is for a later run that reads, so the files must stay: add -k");
    }
    if (!s.status_file.empty() && s.write && !s.wear_out) {
        throw_argument_error(
            "stoneWallingStatusFile tells a later run how much there is, which only stoneWallingWearOut=1 makes the "
            "same for all tasks: add it");
    }
    if (s.wear_out && s.deadline == 0) {
        throw_argument_error("stoneWallingWearOut says what happens after a deadline: add one with -D");
    }
}

void check_order(const IorSettings& s) {
    if (s.reorder != 0 && s.reorder_random != 0) {
        throw_argument_error("-C and -Z exclude each other: keep one");
    }
    if (s.random_offset != 0 && (s.reorder != 0 || s.reorder_random != 0) && !s.file_per_process) {
        throw_argument_error(std::string("-z does not go with ") + (s.reorder != 0 ? "-C" : "-Z") +
                             " on one shared file: use -F");
    }
    if (s.random_offset != 0 && s.check_read && s.random_offset_seed == -1) {
        throw_argument_error("-z with -R needs --random-offset-seed, so that the reader finds the writer's order");
    }
    if (uses_format_library(s) && s.random_offset != 0) {
        throw_argument_error("-z does not go with -a " + s.api + ", as in IOR: use MPIIO or POSIX for random offsets");
    }
    if (uses_format_library(s) && s.fsync_per_write) {
        throw_argument_error("-Y does not go with -a " + s.api +
                             ", where a flush takes all tasks: use -e, which flushes once at the end");
    }
    if (s.hdf_alignment < 0 || s.hdf_chunk < 0) {
        throw_argument_error("--hdf5.setAlignment and --hdf5.chunkSize cannot be below zero");
    }
    if (s.mpi_view && s.random_offset != 0) {
        throw_argument_error("--mpiio.useFileView does not go with -z");
    }
    if (s.aio_pending < 1 || s.aio_pending > 4096) {
        throw_argument_error("--aio.max-pending must be from 1 to 4096");
    }
}

void check_gpus(const IorSettings& s) {
    if (s.gpu_memory < 0 || s.gpu_memory > 3) {
        throw_argument_error("allocateBufferOnGPU is " + std::to_string(s.gpu_memory) +
                             ", but must be 0, 1, or 3 with GPUDirect");
    }
    if (s.gpu_memory == 2) {
        throw_argument_error(
            "allocateBufferOnGPU=2 verifies data on the GPU, which is not built into Sonde: use 1, which verifies on "
            "the processor");
    }
    if (s.gpu_direct && s.gpu_memory == 0) {
        throw_argument_error("GPUDirect needs buffers in the memory of a GPU, as in IOR: add -O allocateBufferOnGPU=3");
    }
    if (s.gpu_memory == 3 && !s.gpu_direct) {
        throw_argument_error("allocateBufferOnGPU=3 needs GPUDirect, as in IOR: add --gpuDirect, or use 1");
    }
    if (s.gpu_direct && s.api != "POSIX") {
        throw_argument_error("GPUDirect does not go with -a " + s.api + ": use -a POSIX");
    }
    if (s.gpu_memory != 0 && s.api == "DUMMY") {
        throw_argument_error("allocateBufferOnGPU does not go with -a DUMMY, which moves no data: use another API");
    }
    if (s.gpu_memory != 0 && s.gpus.empty()) {
        throw_argument_error(
            "allocateBufferOnGPU needs the GPU, because Sonde does not choose one: add -O GPUid=0, or several for the "
            "tasks in turn, like -O GPUid=0@1");
    }
}

}  // namespace

std::vector<std::string> check_settings(IorSettings& s, bool in_script) {
    std::vector<std::string> doubts;
    check_sizes(s);
    check_stops(s);
    check_order(s);
    check_gpus(s);
    if (s.check_read && !s.write && s.signature == 0) {
        throw_argument_error(
            "-R compares with what -G says, and nothing is written here: add -G with the writer's signature");
    }
    if (s.tasks == 0 || s.tasks < -1) {
        throw_argument_error("-N is " + std::to_string(s.tasks) + ", but at least one task must take part");
    }
    if (s.file.find('@') != std::string::npos && s.unique_directory) {
        throw_argument_error("-u does not go with several paths in -o");
    }
    if (!s.status_file.empty() && in_script) {
        doubts.emplace_back("stoneWallingStatusFile keeps the last test only: give each test of the script its own");
    }
    if (s.repetitions < 1) {
        doubts.push_back("-i is " + std::to_string(s.repetitions) + "; one repetition is made");
        s.repetitions = 1;
    }
    if (s.repetitions > max_repetitions) {
        throw_argument_error("-i is " + std::to_string(s.repetitions) + ", but a plan holds at most " +
                             std::to_string(max_repetitions) + " repetitions: start it again for more");
    }
    if (s.test_delay < 0) {
        doubts.emplace_back("-d is below zero; there is no delay");
        s.test_delay = 0;
    }
    if (s.api == "MMAP" && s.fsync) {
        doubts.emplace_back("-e is not known to IOR's MMAP; here it is msync of the whole mapping");
    }
    if (s.reorder > 1) {
        doubts.emplace_back("-C counts once, however often it is given");
        s.reorder = 1;
    }
    if (s.unique_directory && !s.file_per_process) {
        doubts.emplace_back("-u goes with -F only; there is one shared file, so it is not used");
        s.unique_directory = false;
    }
    if (s.warnings_are_errors && !doubts.empty()) {
        throw_argument_error(doubts.front() + " (--warningAsErrors)");
    }
    return doubts;
}

}  // namespace sonde::dialects::ior
