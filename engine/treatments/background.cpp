// SPDX-License-Identifier: Apache-2.0
// Threads and waiting.
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

struct ThreadProgress {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
};

bool is_stop_requested(const StopPredicate& stop) {
    return stop && stop();
}

/// The main thread handles signals: its handler sets the flag that `stop` reads.
std::thread start_thread_without_signals(std::function<void()> body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

}  // namespace

bool run_until_stopped(std::function<void()> work, const StopPredicate& stop) {
    const auto progress = std::make_shared<ThreadProgress>();
    std::thread thread = start_thread_without_signals([progress, work = std::move(work)] {
        work();
        const std::lock_guard lock(progress->mutex);
        progress->done = true;
        progress->changed.notify_all();
    });
    std::unique_lock lock(progress->mutex);
    while (!progress->changed.wait_for(lock, poll_interval, [&] { return progress->done; })) {
        if (is_stop_requested(stop)) {
            thread.detach();
            return false;
        }
    }
    lock.unlock();
    thread.join();
    return true;
}

bool sleep_until_stopped(double seconds, const StopPredicate& stop) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        if (is_stop_requested(stop)) {
            return false;
        }
        std::this_thread::sleep_for(std::min<Clock::duration>(poll_interval, end - now));
    }
    return true;
}

}  // namespace sonde::treatments
