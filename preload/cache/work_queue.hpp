// SPDX-License-Identifier: Apache-2.0
// The files that have work for the threads of the library, and how many threads there are.
#pragma once

#include "model/file.hpp"
#include "system/lock.hpp"

namespace sonde::buffer {

void enqueue_file(File& file) noexcept;
/// Threads of the pool that are there.
std::uint32_t worker_threads() noexcept;
/// They are there and go round, and find on their own what has been dirty for too long. Wakes nobody.
void ensure_workers() noexcept;

struct WorkerPool {
    system::Lock lock;
    system::Condition work;
    system::Condition thread_ended;  ///< a thread has ended
    std::uint32_t number = 1;        ///< a child of fork has another crew
    std::uint32_t started = 0;       ///< threads that are there
    std::uint32_t possible = 0;      ///< as many as could be made; those that left come back with the next work
    std::uint32_t calm = 0;          ///< walks in a row that found no active file
    /// How long a thread without work sleeps: a quarter of what data may age, and at most a second, because who else
    /// came to use a file is noticed then too.
    std::int64_t nap_ns = 1'000'000'000;
    bool leaving = false;  ///< the threads end for good as soon as they have nothing to do
    bool failed = false;   ///< no thread could be made: all is done by the program's own
    /// Starts threads up to the number that is wanted: how many there are then.
    std::uint32_t (*start)() noexcept = nullptr;
    long ended_threads[16] =
        {};  ///< the kernel's numbers of threads that went, lately; 0: it is known that they are gone
    std::uint32_t leavers = 0;
    File* queue[256] = {};
    std::uint32_t first = 0, count = 0;
    std::uint64_t walked_ns = 0;  ///< when somebody last looked at all files
};
extern constinit WorkerPool pool;

/// A process with one thread is cheaper for the kernel, by a tenth of a small call: when files sleep or are closed, and
/// nothing has come for so many walks, the threads leave.
inline constexpr std::uint32_t calm_walks = 3;

/// With the lock of the crew held. nullptr: no file has work.
File* next_file() noexcept;
/// True when it is time for walk_over_files(). With the lock of the crew held.
bool walk_is_due() noexcept;
void note_walk(bool active) noexcept;
/// The calling thread goes now. With the lock of the crew held.
void leave_pool() noexcept;

}  // namespace sonde::buffer
