// SPDX-License-Identifier: Apache-2.0
// State of the buffer of a process: settings, files, memory, and descriptors of the library.
#pragma once

#include "model/file.hpp"
#include "system/memory.hpp"

namespace sonde::buffer {

/// The functions that access storage. As in libc, they return -1 and set errno.
struct StorageCalls {
    ssize_t (*pread)(int, void*, std::size_t, off64_t) = nullptr;
    ssize_t (*pwrite)(int, const void*, std::size_t, off64_t) = nullptr;
};

struct BufferState {
    StorageCalls storage;
    settings::Settings* settings = nullptr;
    int report_fd = -1;
    const char* json_report_folder = nullptr;
    int json_report_fd = -1;  ///< opened with the first line
    long json_report_pid = 0;
    bool is_reported = false;
    system::Lock files_lock;  ///< the table of files; taken before, never after, the lock of a file
    static constexpr std::uint32_t file_buckets = 1024;
    File* files[file_buckets] = {};
    system::Slab<File> file_slab;
    system::Slab<Description> description_slab;
    system::Slab<Page> page_slab;
    std::atomic<std::uint32_t> undelivered_pages{0};  ///< dirty pages and pages being written, of all files
    std::atomic<std::uint64_t> used_memory_bytes{0};
    std::atomic<std::uint64_t> max_memory_bytes{0};
    std::atomic<std::uint64_t> file_size_limit{~0ULL};  ///< RLIMIT_FSIZE
    std::atomic<bool> is_disabled{false};
    std::atomic<bool> has_ended{false};
    /// Statistics of files with few calls, which one line reports together.
    struct FewCallFiles {
        std::atomic<std::uint64_t> files{0}, calls{0}, bytes{0};
    } few_call_totals;
    /// Statistics of all files, for the summary of the process.
    struct ProcessTotals {
        std::atomic<std::uint64_t> files{0}, buffered{0}, calls{0}, bytes{0}, storage_calls{0}, storage_bytes{0},
            wait_ns{0}, differences{0}, lost_errors{0};
    } process_totals;
    bool is_verifying = false;          ///< SONDE_IOBUF=verify
    bool cannot_detect_others = false;  ///< there is no file in memory by which other processes would be noticed
    std::atomic<bool> has_uncovered_files{false};  ///< files were opened that no rule covers
};
extern BufferState state;

}  // namespace sonde::buffer
