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
    int report = -1;
    const char* lines_folder = nullptr;
    int lines = -1;  ///< opened with the first line
    long lines_pid = 0;
    bool reported = false;
    system::Lock files_lock;  ///< the table of files; taken before, never after, the lock of a file
    static constexpr std::uint32_t file_buckets = 1024;
    File* files[file_buckets] = {};
    system::Slab<File> file_slab;
    system::Slab<Description> description_slab;
    system::Slab<Page> page_slab;
    std::atomic<std::uint32_t> undelivered{0};  ///< dirty pages and pages being written, of all files
    std::atomic<std::uint64_t> memory_used{0};
    std::atomic<std::uint64_t> memory_most{0};
    std::atomic<std::uint64_t> size_limit{~0ULL};  ///< RLIMIT_FSIZE
    std::atomic<bool> retired{false};
    std::atomic<bool> ended{false};
    /// Statistics of files with few calls, which one line reports together.
    struct Few {
        std::atomic<std::uint64_t> files{0}, calls{0}, bytes{0};
    } few;
    /// Statistics of all files, for the summary of the process.
    struct Total {
        std::atomic<std::uint64_t> files{0}, buffered{0}, calls{0}, bytes{0}, storage_calls{0}, storage_bytes{0},
            wait_ns{0}, differences{0}, lost_errors{0};
    } total;
    bool is_verifying = false;           ///< SONDE_IOBUF=verify
    bool others_unseen = false;          ///< there is no file in memory by which other processes would be noticed
    std::atomic<bool> strangers{false};  ///< files were opened that no rule covers
};
extern BufferState state;

}  // namespace sonde::buffer
