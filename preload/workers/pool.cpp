// SPDX-License-Identifier: Apache-2.0
// Threads of our own that read ahead, write behind, and see to it that nothing stays here for long. They start with
// the first work there is, and block every signal: the program's handlers run in the program's threads.
#include "workers/pool.hpp"

#include "cache/work_queue.hpp"
#include "guards/lease_thread.hpp"
#include "model/state.hpp"
#include "system/threads.hpp"
#include "workers/tasks.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sonde::buffer {

namespace {

void* run_worker(void*) noexcept {
    while (true) {
        pool.lock.lock();
        File* file = next_file();
        bool walk = false;
        if (file == nullptr) {
            if (!pool.is_ending) {
                pool.work_available.wait(pool.lock, pool.idle_sleep_ns);
            }
            file = next_file();
            if (file == nullptr && (pool.is_ending || pool.idle_walks >= max_idle_walks)) {
                unregister_worker();
                pool.lock.unlock();
                break;
            }
            walk = file == nullptr && is_walk_due();  // a thread that woke for work that another took does not walk
        }
        pool.lock.unlock();
        if (walk) {
            count_idle_walk(walk_over_files());
            continue;
        }
        if (file == nullptr) {
            continue;
        }
        file->lock.lock();
        file->queued_pool_generation = 0;
        while (file->mode.load(std::memory_order_relaxed) == Mode::Active && !file->active_calls.is_gate_closed &&
               do_next_job(*file)) {
        }
        file->lock.unlock();
    }
    return nullptr;
}

std::uint32_t start_pool_threads() noexcept {
    return pool.running_threads + start_threads(run_worker, state.settings->limits.threads - pool.running_threads);
}

}  // namespace

void install_worker_starter() noexcept {
    pool.thread_starter = start_pool_threads;
}

void stop_workers() noexcept {
    constexpr std::int64_t patience_ns = 200'000'000, step_ns = 1'000'000;
    end_lease_thread();
    pool.lock.lock();
    pool.is_ending = true;
    for (std::int64_t waited = 0; pool.running_threads > 0 && waited < patience_ns; waited += step_ns) {
        pool.work_available.notify_all();
        pool.thread_ended.wait(pool.lock, step_ns);
    }
    for (long& thread : pool.ended_threads) {
        if (thread != 0) {  // unshare() of user names fails while there is another thread
            wait_for_thread_end(thread);
        }
        thread = 0;
    }
    pool.lock.unlock();
}

void reset_workers_after_fork() noexcept {
    pool.lock.reset();
    pool.work_available.reset();
    pool.thread_ended.reset();
    pool.running_threads = pool.max_threads_created = pool.idle_walks = pool.first = pool.count = 0;
    std::fill(std::begin(pool.ended_threads), std::end(pool.ended_threads), 0);
    pool.has_failed = pool.is_ending = false;
    ++pool.generation;
    reset_lease_thread_after_fork();
}

}  // namespace sonde::buffer
