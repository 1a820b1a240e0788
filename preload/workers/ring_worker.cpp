// SPDX-License-Identifier: Apache-2.0
// One thread that has the kernel work at several pages at a time: pages that are read ahead, and one page to be written
// of each file. The order of writes is that of the ordinary crew, because a file has one under way at a time.
//
// What the ring refuses is tried by the ordinary call, which goes through the next library in line; its error counts.
#include "workers/ring_worker.hpp"

#include "cache/work_queue.hpp"
#include "model/state.hpp"
#include "model/table.hpp"
#include "system/clock.hpp"
#include "system/high_descriptor.hpp"
#include "system/ring.hpp"
#include "workers/tasks.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <algorithm>

namespace sonde::buffer {

namespace {

constexpr unsigned most_jobs = 32;
constexpr std::uint64_t id_of_alarm = ~std::uint64_t{0};
static_assert(most_jobs < system::Ring::entries);

struct RingWorker {
    system::Ring ring;
    int alarm = -1;  ///< an eventfd: there is work, although the thread waits for the ring
    bool alarm_watched = false;
    struct Slot {
        Job job;
        Request request;
    };
    Slot* slots = nullptr;
    unsigned free[most_jobs] = {};
    unsigned free_count = 0;
    bool walk = false;  ///< all files are to be looked at: nothing new is begun before that

    bool busy() const noexcept { return free_count < most_jobs; }
    bool may_begin() const noexcept { return free_count > 0 && !walk; }
};
constinit RingWorker worker;

int open_alarm() noexcept {
    const long fd = raw::call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return static_cast<int>(fd);
    }
    const long high = system::high_duplicate(static_cast<int>(fd));
    raw::call(SYS_close, fd);
    return static_cast<int>(high);
}

void close_ring() noexcept {
    if (worker.ring.is_open()) {
        note_private(worker.ring.descriptor(), false);
        worker.ring.forget();
    }
    if (worker.alarm >= 0) {
        note_private(worker.alarm, false);
        raw::call(SYS_close, worker.alarm);
    }
    worker.alarm = -1;
    worker.alarm_watched = false;
}

bool submit(unsigned number) noexcept {
    Job& job = worker.slots[number].job;
    Request& request = worker.slots[number].request;
    if (!job.next(request)) {
        return false;
    }
    worker.ring.transfer(job.writes(), request.fd, request.data, request.bytes, request.at, number);
    return true;
}

void finish_job(unsigned number) noexcept {
    Job& job = worker.slots[number].job;
    job.finish(system::now_ns() - job.began_ns);
    worker.free[worker.free_count++] = number;
}

/// As much of the file's work as there is place for. With its lock held.
void begin_some(File& file) noexcept {
    while (worker.may_begin() && file.mode.load(std::memory_order_relaxed) == Mode::Active && !file.turns.gate) {
        const unsigned number = worker.free[worker.free_count - 1];
        Job& job = worker.slots[number].job;
        job = Job{};
        if (!begin_next(file, job)) {
            return;
        }
        --worker.free_count;
        job.began_ns = system::now_ns();
        if (!submit(number)) {
            finish_job(number);
        }
    }
}

void take_result(std::uint64_t id, std::int32_t got) noexcept {
    if (id == id_of_alarm) {
        worker.alarm_watched = false;
        return;
    }
    const auto number = static_cast<unsigned>(id);
    Job& job = worker.slots[number].job;
    job.done(got < 0 && got != -EINTR ? job.ask(worker.slots[number].request) : got);
    if (!submit(number)) {
        File& file = job.file();
        file.lock.lock();
        finish_job(number);
        begin_some(file);
        file.lock.unlock();
    }
}

void take_results() noexcept {
    std::uint64_t id = 0;
    std::int32_t got = 0;
    while (worker.ring.result(id, got)) {
        take_result(id, got);
    }
}

/// Until something has come back from the ring or a file has work. With the lock of the crew held, and held again.
void wait_at_ring() noexcept {
    if (!worker.alarm_watched) {
        worker.ring.poll(worker.alarm, id_of_alarm);
        worker.alarm_watched = true;
    }
    crew.at_ring = true;
    crew.lock.unlock();
    worker.ring.enter(crew.nap_ns);
    crew.lock.lock();
    crew.at_ring = false;
    std::uint64_t calls = 0;
    raw::call(SYS_read, worker.alarm, raw::number(&calls), sizeof(calls));
}

}  // namespace

int open_ring() noexcept {
    if (worker.ring.is_open()) {
        return 0;
    }
    const int error = worker.ring.open(system::first_private);
    if (error != 0) {
        return error;
    }
    note_private(worker.ring.descriptor(), true);
    worker.alarm = open_alarm();
    if (worker.slots == nullptr) {
        worker.slots = static_cast<RingWorker::Slot*>(system::map_bytes(most_jobs * sizeof(RingWorker::Slot)));
    }
    if (worker.alarm < 0 || worker.slots == nullptr) {
        const int refused = worker.alarm < 0 ? worker.alarm : -ENOMEM;
        close_ring();
        return refused;
    }
    note_private(worker.alarm, true);
    worker.walk = false;
    worker.free_count = most_jobs;
    for (unsigned i = 0; i < most_jobs; ++i) {
        worker.free[i] = i;
    }
    return 0;
}

void wake_ring() noexcept {
    const std::uint64_t one = 1;
    raw::call(SYS_write, worker.alarm, raw::number(&one), sizeof(one));
}

void* work_with_ring(void*) noexcept {
    while (true) {
        crew.lock.lock();
        File* file = worker.may_begin() ? next_file() : nullptr;
        if (file == nullptr && worker.busy()) {
            wait_at_ring();
        } else if (file == nullptr && !worker.walk) {
            if (!crew.leaving) {
                crew.work.wait(crew.lock, crew.nap_ns);
            }
            if (crew.count == 0 && (crew.leaving || crew.calm >= calm_walks)) {
                leave_pool();
                crew.lock.unlock();
                return nullptr;  // the ring stays; its next thread goes on with it
            }
        }
        worker.walk = worker.walk || (file == nullptr && walk_is_due());
        crew.lock.unlock();
        if (worker.walk && !worker.busy()) {
            // With nothing under way: who holds the table of files may wait for what we have begun.
            worker.walk = false;
            note_walk(walk_over_files());
        }
        if (file != nullptr) {
            file->lock.lock();
            file->on_list_of = 0;
            begin_some(*file);
            file->lock.unlock();
        }
        worker.ring.enter(0);
        take_results();
    }
    return nullptr;
}

void ring_after_fork() noexcept {
    close_ring();
}

}  // namespace sonde::buffer
