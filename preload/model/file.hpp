// SPDX-License-Identifier: Apache-2.0
// The objects of the buffer: page, file (one per inode) and description (one per open()).
//
// Locking: File::lock protects all members of a file; it is released while a thread waits for storage. An operation
// that may release the lock is counted in ActiveCalls::running. A thread that needs the file without any operation sets
// `is_gate_closed`, which blocks new operations, and waits until `running` and `in_storage` are zero.
#pragma once

#include "model/choice.hpp"
#include "model/ranges.hpp"
#include "model/statistics.hpp"
#include "settings/params.hpp"
#include "system/lock.hpp"

#include <sys/types.h>
#include <atomic>
#include <cstdint>

namespace sonde::buffer {

struct File;

enum class PageActivity : std::uint8_t {
    No,
    Queued,   ///< planned for read-ahead, not started
    Loading,  ///< being read; contents must not be touched
    Writing,  ///< being written; may be read, not changed
};

struct Page {
    Page* next_free = nullptr;
    Page* in_bucket = nullptr;
    Page *newer = nullptr, *older = nullptr;                ///< by last use
    Page *dirty_next = nullptr, *dirty_previous = nullptr;  ///< by the time it became dirty
    std::int64_t index = 0;                                 ///< offset in the file / page size
    char* data = nullptr;
    std::uint64_t dirty_since_ns = 0;
    std::uint32_t load_begin = 0, load_end = 0;  ///< Queued: the part to read
    PageActivity activity = PageActivity::No;
    bool is_dirty = false;         ///< in the list of dirty pages
    bool is_written_past = false;  ///< the writer has passed the page: a worker may write it
    bool is_read_ahead = false;    ///< read ahead and not used yet
    bool has_memory = false;       ///< its memory has been touched, so that no page fault delays a load
    RangeSet valid;                ///< includes everything dirty
    RangeSet dirty;
};

/// The access pattern through one description so far.
struct Stream {
    std::int64_t last_begin = 0;
    std::int64_t last_end = 0;
    std::int64_t step = 0;  ///< distance of the last two beginnings
    std::uint32_t calls = 0;
    std::uint32_t forward = 0;                    ///< calls in a row that began where the one before ended
    std::uint32_t backward = 0;                   ///< calls in a row that ended where the one before began
    std::uint32_t equal_steps = 0;                ///< calls in a row at the same distance
    mutable std::int64_t planned_from_page = -1;  ///< page at which read-ahead was last planned
};

/// An open file description: offset and flags, shared by all duplicates of a descriptor.
struct Description {
    Description* next_free = nullptr;
    std::atomic<File*> file{nullptr};
    Description* next = nullptr;  ///< of the same file
    std::int64_t offset = 0;      ///< ours counts while the file is active, the kernel's otherwise
    int fd = -1;                  ///< one of the descriptors
    int references = 0;           ///< number of descriptors
    bool reads = false, writes = false;
    bool appends = false;         ///< O_APPEND: what is written goes to the end, wherever the offset is
    bool is_offset_busy = false;  ///< an operation that moves the offset is under way
    std::uint32_t error_seen = 0;
    Stream stream;
};

enum class Mode : std::uint8_t {
    Unused,     ///< no file: the object waits for reuse
    Active,     ///< buffered
    Suspended,  ///< nothing is held; calls go to the kernel, until further notice
    Released,   ///< the same for good
};

/// How the file is protected from other processes that read it too early or change it unnoticed.
enum class Guard : std::uint8_t {
    None,       ///< the file is not active
    Lease,      ///< the kernel makes others wait until everything is handed over
    NodeTable,  ///< the user's word; processes of this node that use the library notice each other
    UserWord,   ///< the user's word alone
};

struct Lease {
    int fd = -1;           ///< the descriptor that holds it
    int type = 0;          ///< F_RDLCK or F_WRLCK
    bool is_lost = false;  ///< taken by the kernel, because the process was stopped for too long
};

/// The descriptors by which the library accesses a file.
struct FileDescriptors {
    Description* descriptions = nullptr;
    int read_fd = -1, write_fd = -1;                ///< descriptors of the program to use
    int direct_read_fd = -1, direct_write_fd = -1;  ///< ours with O_DIRECT, for reading and for writing
    std::uint32_t direct_alignment = 0;             ///< bytes
};

/// The cached pages of a file, their size and their limit.
struct CachedPages {
    std::uint32_t page_size = 0;  ///< bytes
    std::uint32_t max_pages = 0;  ///< pages
    std::uint32_t prefetch = 0;   ///< pages read ahead
    std::uint32_t count = 0;
    std::uint32_t queued_for_read_ahead = 0;  ///< pages to be read ahead
    std::uint32_t hash_bucket_mask = 0;
    Page** hash_buckets = nullptr;
    Page* inline_hash_buckets[16] = {};  ///< as many as most files need, without a call for memory
    Page *newest = nullptr, *oldest = nullptr;
};

/// The dirty pages, in the order in which they became dirty.
struct DirtyPageList {
    Page *first = nullptr, *last = nullptr;
    std::uint32_t pages = 0;
};

/// Counts of threads that work on a file or wait for it.
struct ActiveCalls {
    int running = 0;
    int in_storage = 0;       ///< calls to storage, during which the lock is released
    int exclusive_calls = 0;  ///< threads that must see the file without other operations
    bool is_gate_closed = false;
    bool is_write_in_flight = false;  ///< one write to storage at a time: earlier data arrives earlier
    bool is_program_writing = false;  ///< one write of the program at a time, as in the kernel
};

/// Write errors of the storage.
struct StorageErrors {
    int last_errno = 0;       ///< errno
    std::uint32_t count = 0;  ///< so far: each description has seen some of them
    std::uint64_t retry_after_ns = 0;
};

/// Profitability of buffering, measured over windows of calls (see profitability.cpp).
struct Profitability {
    std::uint32_t window_calls = 0, window_hits = 0;
    std::uint32_t suspension_calls = 0;       ///< of the last suspension
    std::uint64_t best_bytes_per_us = 0;      ///< of large transfers lately, bytes per microsecond
    std::uint32_t measured_transfers = 0;     ///< transfers that this follows from
    std::uint64_t small_call_ns = 0;          ///< of small transfers lately
    std::uint32_t probes = 0;                 ///< large calls that bypassed the pages to measure the storage
    std::uint32_t read_ahead_pause = 0;       ///< page changes for which nothing is read ahead
    std::int32_t speculative_loads_left = 4;  ///< full pages that may still be loaded without a stream
    struct PageTouches {
        std::int64_t index = -1;
        std::uint32_t touches = 0;
    };
    PageTouches uncached_pages[128];
};

/// State of a file that is only appended to.
struct AppendState {
    bool only_appends = false;        ///< all descriptions that write it have O_APPEND
    bool has_foreign_growth = false;  ///< another process has changed the size
    std::int64_t kernel_size = 0;     ///< expected size of the file in the kernel
};

/// Calls that bypassed the buffer while the file was suspended; [0] reads, [1] writes. Only their bytes are known.
struct BypassedCounts {
    std::atomic<std::uint64_t> calls[2] = {};
    std::atomic<std::uint64_t> bytes[2] = {};
};

struct File {
    File* next_free = nullptr;
    File* in_bucket = nullptr;
    std::uint32_t generation = 0;  ///< lives of this object that are over
    system::Lock lock;
    system::Condition change_condition;
    std::atomic<Mode> mode{Mode::Unused};
    std::atomic<std::int32_t> pass_through_calls{0};  ///< calls in flight while suspended, see bypass.hpp
    std::atomic<std::int32_t> calls_until_retry{0};
    std::atomic<bool> is_retry_planned{false};  ///< suspended for a number of calls
    /// By POSIX locks, which end when any descriptor of the file is closed.
    std::atomic<bool> has_posix_locks{false};
    /// Generation of the worker pool that has the file in its queue; 0: none. A child of fork starts a new generation,
    /// so a file that the parent queued is not queued in the child. This includes unused File objects in the slab.
    std::uint32_t queued_pool_generation = 0;

    dev_t device = 0;
    ino_t inode = 0;
    std::int64_t size = 0;                 ///< as the program sees it, with buffered data
    std::uint64_t preferred_io_bytes = 0;  ///< what the file system calls its best transfer, bytes
    FileDescriptors descriptors;
    CachedPages pages;
    DirtyPageList dirty;
    ActiveCalls active_calls;
    StorageErrors errors;
    Profitability profitability;
    AppendState append;
    std::uint64_t accepted_since_check = 0;  ///< bytes accepted since the last check of free space
    std::uint64_t space_checked_ns = 0;
    bool is_write_through = false;     ///< space is low: errors must be seen at once
    bool has_release_request = false;  ///< a lock asks other processes to stop buffering (node_locks.hpp)
    bool is_claimed = false;           ///< in the table of the node
    Guard guard = Guard::None;
    Guard last_guard = Guard::None;  ///< for the report
    Lease lease;
    bool is_local = false;             ///< on a file system that only this node writes
    bool is_shared = false;            ///< by ranks of MPI, each with its own part (mpiio=disjoint)
    const void* mpi_handle = nullptr;  ///< of MPI, when it is shared
    bool is_inherited = false;         ///< open before the program began: no report

    settings::Rule* rule = nullptr;
    bool is_watched = false;  ///< suspended; its calls are counted, because its settings are not chosen yet (auto)
    AccessWatch watch;
    BufferChoice choice;  ///< the last one
    Statistics statistics;
    BypassedCounts bypassed;  ///< not in the statistics yet
    std::uint64_t opened_ns = 0;
    const char* release_reason = nullptr;  ///< for the report
    char path[1024] = {};
};

}  // namespace sonde::buffer
