// SPDX-License-Identifier: Apache-2.0
// Threads of our own that read ahead, write behind, and see to it that nothing stays here for long. They start with
// the first work there is, and block every signal: the program's handlers run in the program's threads.
#include "workers/pool.hpp"

#include "cache/work_queue.hpp"
#include "guards/lease_thread.hpp"
#include "model/state.hpp"
#include "system/threads.hpp"
#include "workers/ring_worker.hpp"
#include "workers/tasks.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sonde::buffer {

namespace {

void* work(void*) noexcept {
    while (true) {
        crew.lock.lock();
        File* file = next_file();
        bool walk = false;
        if (file == nullptr) {
            if (!crew.leaving) {
                crew.work.wait(crew.lock, crew.nap_ns);
            }
            file = next_file();
            if (file == nullptr && (crew.leaving || crew.calm >= calm_walks)) {
                leave_pool();
                crew.lock.unlock();
                break;
            }
            walk = file == nullptr && walk_is_due();  // who wakes for work that another one took has no reason to
        }
        crew.lock.unlock();
        if (walk) {
            note_walk(walk_over_files());
            continue;
        }
        if (file == nullptr) {
            continue;
        }
        file->lock.lock();
        file->on_list_of = 0;
        while (file->mode.load(std::memory_order_relaxed) == Mode::Active && !file->turns.gate && work_once(*file)) {
        }
        file->lock.unlock();
    }
    return nullptr;
}

/// The kind of thread that is wanted and possible here, and how many of them.
auto choose_work(std::uint32_t& threads) noexcept {
    threads = state.settings->limits.workers();
    if (state.settings->limits.engine == settings::Engine::Ring && state.ring_refused == 0) {
        state.ring_refused = -open_ring();
        if (state.ring_refused == 0) {
            threads = 1;
            return work_with_ring;
        }
    }
    return work;
}

std::uint32_t start_all() noexcept {
    std::uint32_t threads = 0;
    auto* const kind = choose_work(threads);
    return crew.started + start_threads(kind, threads - crew.started);
}

}  // namespace

void install_workers() noexcept {
    crew.start = start_all;
    crew.wake_ring = wake_ring;
}

void stop_workers() noexcept {
    constexpr std::int64_t patience_ns = 200'000'000, step_ns = 1'000'000;
    end_lease_thread();
    crew.lock.lock();
    crew.leaving = true;
    for (std::int64_t waited = 0; crew.started > 0 && waited < patience_ns; waited += step_ns) {
        crew.work.tell();
        if (crew.at_ring) {
            wake_ring();
        }
        crew.gone.wait(crew.lock, step_ns);
    }
    for (long& thread : crew.left) {
        if (thread != 0) {  // unshare() of user names fails while there is another thread
            wait_for_thread_end(thread);
        }
        thread = 0;
    }
    crew.lock.unlock();
}

void workers_after_fork() noexcept {
    crew.lock.reset();
    crew.work.reset();
    crew.gone.reset();
    crew.started = crew.made = crew.calm = crew.first = crew.count = 0;
    std::fill(std::begin(crew.left), std::end(crew.left), 0);
    crew.failed = crew.at_ring = crew.leaving = false;
    ++crew.number;
    ring_after_fork();
    lease_thread_after_fork();
}

}  // namespace sonde::buffer
