// SPDX-License-Identifier: Apache-2.0
// Knows threads and waiting; nothing of storage.
#include "treatments/background.hpp"

#include <pthread.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace sonde::treatments {

namespace {

using namespace std::chrono_literals;
constexpr auto poll_interval = 50ms;

struct Progress {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
};

bool asked(const StopAsked& stop) {
    return stop && stop();
}

/// Signals belong to the main thread: its handler sets the flag that `stop` reads.
std::thread quiet_thread(std::function<void()> body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

}  // namespace

bool run_or_leave(std::function<void()> work, const StopAsked& stop) {
    const auto progress = std::make_shared<Progress>();
    std::thread thread = quiet_thread([progress, work = std::move(work)] {
        work();
        const std::lock_guard lock(progress->mutex);
        progress->done = true;
        progress->changed.notify_all();
    });
    std::unique_lock lock(progress->mutex);
    while (!progress->changed.wait_for(lock, poll_interval, [&] { return progress->done; })) {
        if (asked(stop)) {
            thread.detach();
            return false;
        }
    }
    lock.unlock();
    thread.join();
    return true;
}

bool sleep_or_stop(double seconds, const StopAsked& stop) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        if (asked(stop)) {
            return false;
        }
        std::this_thread::sleep_for(std::min<Clock::duration>(poll_interval, end - now));
    }
    return true;
}

}  // namespace sonde::treatments
