// SPDX-License-Identifier: Apache-2.0
// The barrier of one node: plain data in shared memory with futexes, so that it works between threads and between
// processes. When there are more streams than cores, waiting streams sleep in the kernel instead of spinning.
#pragma once

#include <atomic>
#include <cstdint>

namespace sonde::ranks {

/// Called by every waiter. A result of false ends the wait, because a peer is gone.
class LivenessCheck {
 public:
    /// Called before every sleep and must be cheap; `thorough` after a sleep that reached its timeout.
    virtual bool is_intact(bool thorough) = 0;

 protected:
    ~LivenessCheck() = default;
};

struct NodeBarrier {
    /// Waits until `streams` callers have arrived. Returns true when all arrived, false when the liveness check failed.
    /// After false the barrier cannot be used again, because the count of arrivals is not reset.
    bool wait_for_all(std::uint32_t streams, bool spin, LivenessCheck& watch);

    /// The same in two halves, for one caller (the leader) that works between the arrival of all and their release. The
    /// leader calls wait_for_followers() and then release(); all others call wait_for_release() instead of
    /// wait_for_all().
    bool wait_for_followers(std::uint32_t streams, bool spin, LivenessCheck& watch);
    void release();
    bool wait_for_release(std::uint32_t streams, bool spin, LivenessCheck& watch);

    /// Number of completed barriers.
    std::uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

    /// Wakes all waiters, so that they call the liveness check now instead of after their timeout.
    void wake_all();

 private:
    // Each word has its own cache line: arriving callers write one, waiting callers read another.
    alignas(64) std::atomic<std::uint32_t> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> full_{0};  // last generation that all callers have reached
    alignas(64) std::atomic<std::uint32_t> generation_{0};
};

}  // namespace sonde::ranks
