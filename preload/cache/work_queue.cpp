// SPDX-License-Identifier: Apache-2.0
#include "cache/work_queue.hpp"

#include "model/state.hpp"
#include "system/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sonde::buffer {

constinit WorkerPool pool;

namespace {

/// A full queue drops a file. The walk over all files, a few times a second, finds its work again.
void append_file(File& file) noexcept {
    if (pool.count < std::size(pool.queue)) {
        pool.queue[(pool.first + pool.count++) % std::size(pool.queue)] = &file;
        file.queued_pool_generation = pool.generation;
        pool.work_available.notify_all();
    }
}

void start_workers() noexcept {
    if ((pool.running_threads > 0 && pool.running_threads == pool.max_threads_created) || pool.has_failed ||
        pool.is_ending || pool.thread_starter == nullptr || state.settings->limits.threads == 0) {
        return;
    }
    pool.idle_sleep_ns = std::min<std::int64_t>(state.settings->limits.max_age_ms / 4, 1000) * 1'000'000;
    pool.running_threads = pool.thread_starter();
    pool.has_failed = pool.running_threads == 0;
    pool.max_threads_created = pool.running_threads;
}

}  // namespace

File* next_file() noexcept {
    if (pool.count == 0) {
        return nullptr;
    }
    File* file = pool.queue[pool.first];
    pool.first = (pool.first + 1) % std::size(pool.queue);
    --pool.count;
    return file;
}

bool is_walk_due() noexcept {
    const std::uint64_t now = system::now_ns();
    if (now - pool.last_walk_ns < static_cast<std::uint64_t>(pool.idle_sleep_ns)) {
        return false;
    }
    pool.last_walk_ns = now;
    return true;
}

void unregister_worker() noexcept {
    --pool.running_threads;
    pool.ended_threads[pool.ended_thread_count++ % std::size(pool.ended_threads)] = raw::call(SYS_gettid);
    pool.thread_ended.notify_all();
}

void count_idle_walk(bool active) noexcept {
    system::LockGuard lock_guard(pool.lock);
    pool.idle_walks = active ? 0 : pool.idle_walks + 1;
}

std::uint32_t count_worker_threads() noexcept {
    const system::LockGuard lock_guard(pool.lock);
    return pool.running_threads;
}

void ensure_worker_threads() noexcept {
    const int saved_errno = errno;
    pool.lock.lock();
    pool.idle_walks = 0;
    start_workers();
    pool.lock.unlock();
    errno = saved_errno;
}

void enqueue_file(File& file) noexcept {
    if (file.queued_pool_generation == pool.generation) {
        return;
    }
    const int saved_errno = errno;
    pool.lock.lock();
    pool.idle_walks = 0;
    start_workers();
    if (pool.running_threads > 0) {
        append_file(file);
    }
    pool.lock.unlock();
    errno = saved_errno;
}

}  // namespace sonde::buffer
