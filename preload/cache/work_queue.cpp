// SPDX-License-Identifier: Apache-2.0
#include "cache/work_queue.hpp"

#include "model/state.hpp"
#include "system/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sonde::buffer {

constinit WorkerPool crew;

namespace {

/// The queue may forget a file when it is full: the walk over all files, a few times a second, finds it again.
void put(File& file) noexcept {
    if (crew.count < std::size(crew.queue)) {
        crew.queue[(crew.first + crew.count++) % std::size(crew.queue)] = &file;
        file.on_list_of = crew.number;
        crew.work.tell();
        if (crew.at_ring) {
            crew.wake_ring();
        }
    }
}

void start_workers() noexcept {
    if ((crew.started > 0 && crew.started == crew.made) || crew.failed || crew.leaving || crew.start == nullptr ||
        state.settings->limits.workers() == 0) {
        return;
    }
    crew.nap_ns = std::min<std::int64_t>(state.settings->limits.age_ms / 4, 1000) * 1'000'000;
    crew.started = crew.start();
    crew.failed = crew.started == 0;
    crew.made = crew.started;
}

}  // namespace

File* next_file() noexcept {
    if (crew.count == 0) {
        return nullptr;
    }
    File* file = crew.queue[crew.first];
    crew.first = (crew.first + 1) % std::size(crew.queue);
    --crew.count;
    return file;
}

bool walk_is_due() noexcept {
    const std::uint64_t now = system::now_ns();
    if (now - crew.walked_ns < static_cast<std::uint64_t>(crew.nap_ns)) {
        return false;
    }
    crew.walked_ns = now;
    return true;
}

void leave_pool() noexcept {
    --crew.started;
    crew.left[crew.leavers++ % std::size(crew.left)] = raw::call(SYS_gettid);
    crew.gone.tell();
}

void note_walk(bool active) noexcept {
    system::Hold hold(crew.lock);
    crew.calm = active ? 0 : crew.calm + 1;
}

std::uint32_t worker_threads() noexcept {
    const system::Hold hold(crew.lock);
    return crew.started;
}

void ensure_workers() noexcept {
    const int kept = errno;
    crew.lock.lock();
    crew.calm = 0;
    start_workers();
    crew.lock.unlock();
    errno = kept;
}

void enqueue_file(File& file) noexcept {
    if (file.on_list_of == crew.number) {
        return;
    }
    const int kept = errno;
    crew.lock.lock();
    crew.calm = 0;
    start_workers();
    if (crew.started > 0) {
        put(file);
    }
    crew.lock.unlock();
    errno = kept;
}

}  // namespace sonde::buffer
