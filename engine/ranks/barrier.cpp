// SPDX-License-Identifier: Apache-2.0
#include "ranks/barrier.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cerrno>
#include <climits>

namespace sonde::ranks {
namespace {

constexpr long look_every_ns = 100'000'000;  // how soon a sleeping stream notices that a peer died
constexpr int spins = 2000;                  // some ten microseconds: less than one sleep and wake

// Not FUTEX_PRIVATE: the waiters may be in other processes. False after the time-out.
bool sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
    const timespec limit{0, look_every_ns};
    return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &limit, nullptr, 0) == 0 ||
           errno != ETIMEDOUT;
}

void wake_all(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void pause_core() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

bool wait_for(std::atomic<std::uint32_t>& word, std::uint32_t wanted, bool spin, Watch& watch) {
    for (int turn = 0; spin && turn < spins; ++turn) {
        if (word.load(std::memory_order_acquire) == wanted) {
            return true;
        }
        pause_core();
    }
    for (bool late = false;;) {
        const std::uint32_t seen = word.load(std::memory_order_acquire);
        if (seen == wanted) {
            return true;
        }
        if (!watch.intact(late)) {
            return false;
        }
        late = !sleep_while(word, seen);
    }
}

}  // namespace

bool Gate::pass(std::uint32_t streams, bool spin, Watch& watch) {
    // Read before arriving: from then on the generation cannot change without us.
    const std::uint32_t next = generation_.load(std::memory_order_acquire) + 1;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == streams) {
        open();
        return true;
    }
    return wait_for(generation_, next, spin, watch);
}

bool Gate::gather(std::uint32_t streams, bool spin, Watch& watch) {
    const std::uint32_t next = generation_.load(std::memory_order_acquire) + 1;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == streams) {
        return true;
    }
    return wait_for(full_, next, spin, watch);
}

void Gate::open() {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    wake_all(generation_);
}

bool Gate::follow(std::uint32_t streams, bool spin, Watch& watch) {
    const std::uint32_t next = generation_.load(std::memory_order_acquire) + 1;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == streams) {
        full_.store(next, std::memory_order_release);
        wake_all(full_);
    }
    return wait_for(generation_, next, spin, watch);
}

void Gate::alarm() {
    wake_all(full_);
    wake_all(generation_);
}

}  // namespace sonde::ranks
