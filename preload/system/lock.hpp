// SPDX-License-Identifier: Apache-2.0
// A lock and an event on futexes. Ours, because they must be put back to "free" in the child of a fork, tried with a
// time limit when the process is about to end, and must not pull in anything.
#pragma once

#include "system/raw.hpp"

#include <linux/futex.h>
#include <time.h>
#include <atomic>
#include <cstdint>

namespace sonde::system {

inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t limit_ns = -1) {
    timespec limit{};
    limit.tv_sec = limit_ns / 1'000'000'000;
    limit.tv_nsec = limit_ns % 1'000'000'000;
    raw::call(SYS_futex, raw::pointer_to_number(&word), FUTEX_WAIT_PRIVATE, expected,
              limit_ns < 0 ? 0 : raw::pointer_to_number(&limit));
}

inline void futex_wake(const std::atomic<std::uint32_t>& word, int waiters) {
    raw::call(SYS_futex, raw::pointer_to_number(&word), FUTEX_WAKE_PRIVATE, waiters);
}

/// 0 free, 1 held, 2 held and somebody may wait.
class Lock {
 public:
    void lock() noexcept {
        std::uint32_t value = 0;
        if (!state_.compare_exchange_strong(value, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
            wait();
        }
    }
    /// Returns false if the lock was not free within `limit_ns`.
    bool try_lock(std::int64_t limit_ns) noexcept {
        for (std::int64_t waited = 0;; waited += step_ns) {
            std::uint32_t value = 0;
            if (state_.compare_exchange_strong(value, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
                return true;
            }
            if (waited >= limit_ns) {
                return false;
            }
            futex_wait(never_, 0, step_ns);
        }
    }
    void unlock() noexcept {
        if (state_.exchange(0, std::memory_order_release) == 2) {
            futex_wake(state_, 1);
        }
    }
    /// Resets the lock in a child after fork(), in which no other thread exists that could release it.
    void reset() noexcept { state_.store(0, std::memory_order_relaxed); }

 private:
    static constexpr std::int64_t step_ns = 1'000'000;
    void wait() noexcept {
        for (int spin = 0; spin < 100; ++spin) {
            std::uint32_t value = 0;
            if (state_.compare_exchange_weak(value, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
                return;
            }
        }
        while (state_.exchange(2, std::memory_order_acquire) != 0) {
            futex_wait(state_, 2);
        }
    }
    std::atomic<std::uint32_t> state_{0};
    static inline std::atomic<std::uint32_t> never_{0};
};

/// Condition variable: a wait releases the lock until a change is signaled.
class Condition {
 public:
    void wait(Lock& held, std::int64_t limit_ns = -1) noexcept {
        const std::uint32_t value = count_.load(std::memory_order_relaxed);
        waiting_.fetch_add(1, std::memory_order_relaxed);
        held.unlock();
        futex_wait(count_, value, limit_ns);
        held.lock();
        waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    /// Wakes all waiting threads. Requires the lock. Costs a system call only if a thread waits.
    void notify_all() noexcept {
        if (waiting_.load(std::memory_order_relaxed) != 0) {
            count_.fetch_add(1, std::memory_order_release);
            futex_wake(count_, 1 << 30);
        }
    }
    void reset() noexcept { waiting_.store(0, std::memory_order_relaxed); }

 private:
    std::atomic<std::uint32_t> count_{0};
    std::atomic<std::uint32_t> waiting_{0};
};

class LockGuard {
 public:
    explicit LockGuard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
    ~LockGuard() { lock_.unlock(); }
    LockGuard(const LockGuard&) = delete;
    LockGuard& operator=(const LockGuard&) = delete;

 private:
    Lock& lock_;
};

}  // namespace sonde::system
