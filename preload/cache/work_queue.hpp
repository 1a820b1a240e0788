// SPDX-License-Identifier: Apache-2.0
// The queue of files with work for the threads of the library, and the number of threads.
#pragma once

#include "model/file.hpp"
#include "system/lock.hpp"

namespace sonde::buffer {

void enqueue_file(File& file) noexcept;
/// Threads of the pool that are there.
std::uint32_t count_worker_threads() noexcept;
/// Starts the threads that periodically write pages that have been dirty for too long. Wakes no thread.
void ensure_worker_threads() noexcept;

struct WorkerPool {
    system::Lock lock;
    system::Condition work_available;
    system::Condition thread_ended;  ///< a thread has ended
    std::uint32_t generation = 1;    ///< a child of fork has a pool with another number
    std::uint32_t running_threads = 0;
    std::uint32_t max_threads_created =
        0;  ///< threads that can be created; those that ended are started again with the next work
    std::uint32_t idle_walks = 0;  ///< consecutive walks without an active file
    /// Sleep of a thread without work: a quarter of the maximum age of dirty data, at most 1 s, because a walk also
    /// notices other users of a file.
    std::int64_t idle_sleep_ns = 1'000'000'000;
    bool is_ending = false;   ///< the threads end as soon as the queue is empty and are not started again
    bool has_failed = false;  ///< no thread could be created: threads of the program do all work
    /// Starts threads up to the configured number. Returns the number of running threads.
    std::uint32_t (*thread_starter)() noexcept = nullptr;
    long ended_threads[16] = {};  ///< thread ids of threads that are ending; 0: the thread has ended
    std::uint32_t ended_thread_count = 0;
    File* queue[256] = {};
    std::uint32_t first = 0, count = 0;
    std::uint64_t last_walk_ns = 0;  ///< time of the last walk over all files
};
extern constinit WorkerPool pool;

/// System calls of a process with one thread cost about 10 % less. So the threads end after this many walks without an
/// active file.
inline constexpr std::uint32_t max_idle_walks = 3;

/// Requires the lock of the pool. Returns the next file with work, or nullptr.
File* next_file() noexcept;
/// Returns whether walk_over_files() is due. Requires the lock of the pool.
bool is_walk_due() noexcept;
void count_idle_walk(bool active) noexcept;
/// Removes the calling thread from the pool before it ends. Requires the lock of the pool.
void unregister_worker() noexcept;

}  // namespace sonde::buffer
