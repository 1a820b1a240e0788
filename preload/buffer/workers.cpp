// SPDX-License-Identifier: Apache-2.0
// Threads of our own that read ahead, write behind, and see to it that nothing stays here for long. They start with
// the first work there is, and block every signal: the program's handlers run in the program's threads.
#include "buffer/workers.hpp"

#include "buffer/files.hpp"
#include "buffer/node_locks.hpp"
#include "buffer/outside.hpp"
#include "buffer/ring_worker.hpp"
#include "buffer/state.hpp"
#include "buffer/states.hpp"
#include "system/clock.hpp"
#include "system/oldest_libc.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <iterator>

SONDE_OLDEST(pthread_create);
SONDE_OLDEST(pthread_attr_setstacksize);

namespace sonde::buffer {

constinit Crew crew;

namespace {

/// The queue may forget a file when it is full: the walk over all files, a few times a second, finds it again.
void put(File& file) noexcept {
    if (crew.count < std::size(crew.queue)) {
        crew.queue[(crew.first + crew.count++) % std::size(crew.queue)] = &file;
        file.on_list_of = crew.number;
        crew.work.tell();
        if (crew.at_ring) {
            wake_ring();
        }
    }
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

void leave_crew() noexcept {
    --crew.started;
    crew.left[crew.leavers++ % std::size(crew.left)] = raw::call(SYS_gettid);
    crew.gone.tell();
}

bool walk_over_files() noexcept {
    static bool active;  // under the lock of all files
    system::Hold hold(state.files_lock);
    active = false;
    for_each_file([](File& file) {
        yield_to_others(file);
        heed_growth(file);
        if (file.mode.load(std::memory_order_relaxed) == Mode::Active && file.on_list_of != crew.number &&
            (file.dirty.first != nullptr || file.held.queued > 0)) {
            hand_to_workers(file);
        }
        active |= file.mode.load(std::memory_order_relaxed) == Mode::Active;
    });
    return active;
}

void note_walk(bool active) noexcept {
    system::Hold hold(crew.lock);
    crew.calm = active ? 0 : crew.calm + 1;
}

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
                leave_crew();
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

void start_threads() noexcept {
    if ((crew.started > 0 && crew.started == crew.made) || crew.failed || crew.leaving ||
        state.settings->limits.workers() == 0) {
        return;
    }
    std::uint32_t threads = 0;
    auto* const kind = choose_work(threads);
    crew.nap_ns = std::min<std::int64_t>(state.settings->limits.age_ms / 4, 1000) * 1'000'000;
    // All but the two that libc needs in every thread (setuid() waits for them): 32 and 33, bits 31 and 32.
    const std::uint64_t all = ~(std::uint64_t{3} << 31U);
    std::uint64_t before = 0;
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::number(&all), raw::number(&before), sizeof(all));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256U << 10U);
    while (crew.started < threads) {
        pthread_t thread{};
        if (pthread_create(&thread, &attributes, kind, nullptr) != 0) {
            crew.failed = crew.started == 0;
            break;
        }
        ++crew.started;
    }
    crew.made = crew.started;
    pthread_attr_destroy(&attributes);
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, raw::number(&before), 0, sizeof(before));
}

}  // namespace

void call_workers() noexcept {
    const int kept = errno;
    crew.lock.lock();
    crew.calm = 0;
    start_threads();
    crew.lock.unlock();
    errno = kept;
}

void hand_to_workers(File& file) noexcept {
    if (file.on_list_of == crew.number) {
        return;
    }
    const int kept = errno;
    crew.lock.lock();
    crew.calm = 0;
    start_threads();
    if (crew.started > 0) {
        put(file);
    }
    crew.lock.unlock();
    errno = kept;
}

namespace {

/// What was planned first is wanted first. It is found from the other end, where all that is planned lies.
Page* next_queued(const File& file) noexcept {
    Page* found = nullptr;
    std::uint32_t left = file.held.queued;
    for (Page* page = file.held.newest; page != nullptr && left > 0; page = page->older) {
        if (page->busy == Busy::Queued) {
            found = page;
            --left;
        }
    }
    return found;
}

}  // namespace

bool begin_next(File& file, Job& job) noexcept {
    Page* first = file.dirty.first;
    if (first != nullptr && !file.turns.writing && first->busy == Busy::No) {
        const std::uint64_t now = system::now_ns();
        const std::uint64_t age_ns = static_cast<std::uint64_t>(state.settings->limits.age_ms) * 1'000'000 / 2;
        const bool behind = file.dirty.pages > 1 && file.dirty.pages + 1 >= file.held.limit;
        const bool early = (first->full || behind) && file.rule->preflush > 0;
        if ((early || now - first->dirty_since_ns > age_ns) && now >= file.errors.retry_after_ns) {
            ++file.statistics.behind_started;
            job.begin_write(file);
            return true;
        }
    }
    while (Page* page = next_queued(file)) {
        if (job.begin_load(file, *page, page->want_begin, page->want_end)) {
            return true;
        }
        page->busy = Busy::No;
        --file.held.queued;
    }
    return false;
}

bool work_once(File& file) noexcept {
    Job job;
    if (!begin_next(file, job)) {
        return false;
    }
    Outside outside(file, nullptr);
    job.do_all();
    outside.end();
    job.finish(outside.spent_ns);
    return true;
}

void send_workers_home() noexcept {
    constexpr std::int64_t patience_ns = 200'000'000, step_ns = 1'000'000;
    crew.lock.lock();
    crew.leaving = true;
    for (std::int64_t waited = 0; crew.started > 0 && waited < patience_ns; waited += step_ns) {
        crew.work.tell();
        if (crew.at_ring) {
            wake_ring();
        }
        crew.gone.wait(crew.lock, step_ns);
    }
    // A thread that has said that it goes is one of the process for a moment longer: unshare() of user names fails
    // then. Nobody is asked for when none is left: the program may have kept no calls but read, write and exit.
    std::int64_t napped = 0;
    for (long& thread : crew.left) {
        constexpr std::int64_t nap_ns = 50'000;
        const long process = thread != 0 ? raw::call(SYS_getpid) : 0;
        for (; thread != 0 && napped < patience_ns; napped += nap_ns) {
            if (raw::call(SYS_tgkill, process, thread, 0) == -ESRCH) {
                break;
            }
            const timespec nap{0, nap_ns};
            raw::call(SYS_nanosleep, raw::number(&nap), 0);
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
}

}  // namespace sonde::buffer
