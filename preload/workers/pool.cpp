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
            if (!pool.ending) {
                pool.work_available.wait(pool.lock, pool.idle_sleep_ns);
            }
            file = next_file();
            if (file == nullptr && (pool.ending || pool.idle_walks >= max_idle_walks)) {
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
        file->queued_in_pool = 0;
        while (file->mode.load(std::memory_order_relaxed) == Mode::Active && !file->active_calls.is_gate_closed &&
               do_next_job(*file)) {
        }
        file->lock.unlock();
    }
    return nullptr;
}

std::uint32_t start_pool_threads() noexcept {
    return pool.started + start_threads(run_worker, state.settings->limits.threads - pool.started);
}

}  // namespace

void install_workers() noexcept {
    pool.start = start_pool_threads;
}

void stop_workers() noexcept {
    constexpr std::int64_t patience_ns = 200'000'000, step_ns = 1'000'000;
    end_lease_thread();
    pool.lock.lock();
    pool.ending = true;
    for (std::int64_t waited = 0; pool.started > 0 && waited < patience_ns; waited += step_ns) {
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

void workers_after_fork() noexcept {
    pool.lock.reset();
    pool.work_available.reset();
    pool.thread_ended.reset();
    pool.started = pool.max_threads_created = pool.idle_walks = pool.first = pool.count = 0;
    std::fill(std::begin(pool.ended_threads), std::end(pool.ended_threads), 0);
    pool.failed = pool.ending = false;
    ++pool.generation;
    lease_thread_after_fork();
}

}  // namespace sonde::buffer
