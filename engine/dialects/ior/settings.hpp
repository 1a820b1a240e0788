// SPDX-License-Identifier: Apache-2.0
// The options of one test of IOR 4.1, with IOR's names and defaults.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sonde::dialects::ior {

enum class Packet { timestamp, offset, incompressible, random };
enum class Format { human, json, csv };

struct IorSettings {
    // What moves
    std::string api = "POSIX";
    std::string file = "testFile";
    std::int64_t block = 1 << 20, transfer = 256 << 10, segments = 1;  ///< bytes, bytes, count
    int repetitions = 1;
    bool write = false, read = false, check_write = false, check_read = false;
    bool file_per_process = false, unique_directory = false, multiple_files = false;
    bool collective = false, keep = false, keep_with_error = false, use_existing = false;
    bool fsync = false, fsync_per_write = false, single_attempt = false, intra_barriers = false;
    int tasks = -1;  ///< first so many ranks; -1 = all
    // Whose data, in which order
    int reorder = 0;         ///< -C
    int reorder_random = 0;  ///< -Z; 2 = a permutation
    std::int64_t reorder_seed = 0;
    std::int64_t task_offset = 1;
    int random_offset = 0;                 ///< -z; 2 = with replacement
    std::int64_t random_offset_seed = -1;  ///< -1 = another one every time
    std::int64_t random_prefill = 0;       ///< bytes
    // Content
    Packet packet = Packet::timestamp;
    std::int64_t signature = 0;  ///< 0 = the time
    // When it ends, what is between
    std::int64_t deadline = 0;  ///< seconds, -D
    bool wear_out = false;
    std::int64_t wear_out_iterations = 0;
    std::string status_file;
    std::int64_t max_minutes = 0, min_seconds = 0;
    std::int64_t test_delay = 0;       ///< seconds
    std::int64_t operation_delay = 0;  ///< microseconds
    double memory_share = 0;           ///< of a node, 0..1
    std::int64_t memory_per_task = 0;  ///< bytes
    // Back ends
    bool direct = false;
    std::int64_t gpu_memory = 0;  ///< allocateBufferOnGPU: 0 = buffers of the host
    std::vector<int> gpus;        ///< GPUid; empty = -1, IOR's default: the GPUs of a node in turn
    bool gpu_direct = false;
    std::int64_t aio_pending = 128;
    std::int64_t dummy_transfer_us = 0, dummy_create_us = 0, dummy_close_us = 0, dummy_sync_us = 0;
    bool dummy_only_first = false;
    bool mpi_preallocate = false, mpi_view = false, mpi_show_hints = false;
    std::map<std::string, std::string> hints;
    bool hdf_collective_metadata = false;
    std::int64_t hdf_alignment = 1;  ///< bytes
    std::int64_t hdf_chunk = 0;      ///< elements; 0 = contiguous
    // Stripes of new files, under the names of both file systems; 0 or empty = as the directory has it
    std::int64_t stripe_count = 0, stripe_size = 0;
    std::int64_t stripe_start = -1;
    std::string stripe_pool;
    // Output
    int verbose = 0;
    bool dry_run = false, warnings_are_errors = false, summary_always = false;
    std::int64_t reference = 0, outlier_seconds = 0;
    std::int64_t nodes = -1, tasks_on_node0 = -1;  ///< given by the user; -1 = found out
    std::string platform, debug;
    std::string rank_details_file, operations_prefix;
    Format format = Format::human;
    std::string summary_file;
    std::vector<std::string> notes;  ///< what is done otherwise than the words might suggest

    bool add_note(const std::string& note) {
        for (const std::string& earlier : notes) {
            if (earlier == note) {
                return false;
            }
        }
        notes.push_back(note);
        return true;
    }
};

/// Whether a library of a file format moves the bytes, through MPI.
inline bool uses_format_library(const IorSettings& settings) {
    return settings.api == "HDF5" || settings.api == "NCMPI";
}

/// Whether MPI moves the bytes: collective calls and hints are possible.
inline bool uses_mpi(const IorSettings& settings) {
    return settings.api == "MPIIO" || uses_format_library(settings);
}

/// Throws plan::PlanError with the sentence.
[[noreturn]] void throw_argument_error(const std::string& sentence);

}  // namespace sonde::dialects::ior
