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

constexpr long check_interval_ns = 100'000'000;  // time until a sleeping stream notices that a peer died
constexpr int spins = 2000;                      // about 10 us: less than one sleep and wake-up

// Not FUTEX_PRIVATE, because waiters may be in other processes. Returns false after the timeout.
bool sleep_while_equal(std::atomic<std::uint32_t>& word, std::uint32_t value) {
    const timespec limit{0, check_interval_ns};
    return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &limit, nullptr, 0) == 0 ||
           errno != ETIMEDOUT;
}

void wake_futex(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void pause_processor() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

bool wait_until(std::atomic<std::uint32_t>& word, std::uint32_t expected, bool spin, LivenessCheck& watch) {
    for (int turn = 0; spin && turn < spins; ++turn) {
        if (word.load(std::memory_order_acquire) == expected) {
            return true;
        }
        pause_processor();
    }
    for (bool late = false;;) {
        const std::uint32_t value = word.load(std::memory_order_acquire);
        if (value == expected) {
            return true;
        }
        if (!watch.is_intact(late)) {
            return false;
        }
        late = !sleep_while_equal(word, value);
    }
}

}  // namespace

bool NodeBarrier::wait_for_all(std::uint32_t streams, bool spin, LivenessCheck& watch) {
    // The generation is read before arrival: afterwards it cannot change without this caller.
    const std::uint32_t next = generation_.load(std::memory_order_acquire) + 1;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == streams) {
        release();
        return true;
    }
    return wait_until(generation_, next, spin, watch);
}

bool NodeBarrier::wait_for_followers(std::uint32_t streams, bool spin, LivenessCheck& watch) {
    const std::uint32_t next = generation_.load(std::memory_order_acquire) + 1;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == streams) {
        return true;
    }
    return wait_until(full_, next, spin, watch);
}

void NodeBarrier::release() {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    wake_futex(generation_);
}

bool NodeBarrier::wait_for_release(std::uint32_t streams, bool spin, LivenessCheck& watch) {
    const std::uint32_t next = generation_.load(std::memory_order_acquire) + 1;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == streams) {
        full_.store(next, std::memory_order_release);
        wake_futex(full_);
    }
    return wait_until(generation_, next, spin, watch);
}

void NodeBarrier::wake_all() {
    wake_futex(full_);
    wake_futex(generation_);
}

}  // namespace sonde::ranks
