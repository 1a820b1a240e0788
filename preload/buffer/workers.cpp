// SPDX-License-Identifier: Apache-2.0
// Threads of our own that read ahead, write behind, and see to it that nothing stays here for long. They start with
// the first work there is, and block every signal: the program's handlers run in the program's threads.
#include "buffer/inside.hpp"
#include "system/clock.hpp"
#include "system/oldest_libc.hpp"

#include <algorithm>
#include <csignal>

SONDE_OLDEST(pthread_create);
SONDE_OLDEST(pthread_attr_setstacksize);

namespace sonde::buffer {

namespace {

struct Crew {
    system::Lock lock;
    system::Event work;
    std::uint32_t started = 0;
    bool failed = false;  ///< no thread could be made: all is done by the program's own
    File* queue[256] = {};
    std::uint32_t first = 0, count = 0;
    std::uint64_t walked_ns = 0;  ///< when somebody last looked at all files
};
constinit Crew crew;

/// The queue may forget a file when it is full: the walk over all files, a few times a second, finds it again.
void put(File& file) noexcept {
    if (crew.count < std::size(crew.queue)) {
        crew.queue[(crew.first + crew.count++) % std::size(crew.queue)] = &file;
        file.in_queue = true;
        crew.work.tell();
    }
}

File* next_file() noexcept {
    if (crew.count == 0) {
        return nullptr;
    }
    File* file = crew.queue[crew.first];
    crew.first = (crew.first + 1) % std::size(crew.queue);
    --crew.count;
    return file;
}

void walk_over_files() noexcept {
    system::Hold hold(state.files_lock);
    for_each_file([](File& file) {
        yield_to_others(file);
        if (file.mode.load(std::memory_order_relaxed) == Mode::Active && !file.in_queue &&
            (file.dirty_first != nullptr || file.queued > 0)) {
            hand_to_workers(file);
        }
    });
}

void* work(void*) {
    // A quarter of what data may age, and at least once a second: who else came to use a file is noticed here too.
    const std::int64_t nap_ns = std::min<std::int64_t>(state.settings->limits.age_ms / 4, 1000) * 1'000'000;
    while (true) {
        crew.lock.lock();
        File* file = next_file();
        bool idle = false;
        if (file == nullptr) {
            crew.work.wait(crew.lock, any() ? nap_ns : -1);
            file = next_file();
            // Whoever wakes for work that another one took has no reason to look at everything.
            const std::uint64_t now = system::now_ns();
            idle = file == nullptr && now - crew.walked_ns >= static_cast<std::uint64_t>(nap_ns);
            crew.walked_ns = idle ? now : crew.walked_ns;
        }
        crew.lock.unlock();
        if (idle) {
            walk_over_files();
            continue;
        }
        if (file == nullptr) {
            continue;
        }
        file->lock.lock();
        file->in_queue = false;
        while (file->mode.load(std::memory_order_relaxed) == Mode::Active && !file->gate && work_once(*file)) {
        }
        file->lock.unlock();
    }
    return nullptr;
}

void start_threads() noexcept {
    if (crew.started > 0 || crew.failed || state.settings->limits.threads == 0) {
        return;
    }
    // All but the two that libc needs in every thread (setuid() waits for them): 32 and 33, bits 31 and 32.
    const std::uint64_t all = ~(std::uint64_t{3} << 31U);
    std::uint64_t before = 0;
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::number(&all), raw::number(&before), sizeof(all));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256U << 10U);
    while (crew.started < state.settings->limits.threads) {
        pthread_t thread{};
        if (pthread_create(&thread, &attributes, work, nullptr) != 0) {
            crew.failed = crew.started == 0;
            break;
        }
        ++crew.started;
    }
    pthread_attr_destroy(&attributes);
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::number(&before), 0, sizeof(before));
}

}  // namespace

void hand_to_workers(File& file) noexcept {
    if (file.in_queue) {
        return;
    }
    const int kept = errno;
    crew.lock.lock();
    start_threads();
    if (crew.started > 0) {
        put(file);
    }
    crew.lock.unlock();
    errno = kept;
}

bool work_once(File& file) noexcept {
    Page* first = file.dirty_first;
    if (first != nullptr && !file.writing && first->busy == Busy::No) {
        const std::uint64_t now = system::now_ns();
        const std::uint64_t age_ns = static_cast<std::uint64_t>(state.settings->limits.age_ms) * 1'000'000 / 2;
        const bool behind = file.dirty_pages > 1 && file.dirty_pages + 1 >= file.page_limit;
        if ((first->full || behind || now - first->dirty_since_ns > age_ns) && now >= file.retry_after_ns) {
            ++file.statistics.behind_started;
            write_oldest(file, false);
            return true;
        }
    }
    if (file.queued > 0) {
        for (Page* page = file.newest; page != nullptr; page = page->older) {
            if (page->busy == Busy::Queued) {
                if (load(file, *page, page->want_begin, page->want_end, false) != 0) {
                    page->ahead = false;  // the program's own read will meet the error
                }
                return true;
            }
        }
    }
    return false;
}

void workers_after_fork() noexcept {
    crew.lock.reset();
    crew.work.reset();
    crew.started = crew.first = crew.count = 0;
    crew.failed = false;
}

}  // namespace sonde::buffer
