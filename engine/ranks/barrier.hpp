// SPDX-License-Identifier: Apache-2.0
// The barrier of one node: plain data in shared memory, futexes underneath, so that it works alike between threads and
// between processes. Streams that outnumber the cores sleep in the kernel instead of eating the others' time.
#pragma once

#include <atomic>
#include <cstdint>

namespace sonde::ranks {

/// Asked by whoever waits. False ends the wait (a peer is gone).
class Watch {
 public:
    /// Cheap question before every sleep; `thorough` after a sleep that ran into its time-out.
    virtual bool intact(bool thorough) = 0;

 protected:
    ~Watch() = default;
};

struct Gate {
    /// Waits until `streams` callers have arrived. True when all came; false when the watch gave up. After a false the
    /// gate is of no more use: the count of the arrived is never set back.
    bool pass(std::uint32_t streams, bool spin, Watch& watch);

    /// The same in two halves, for one distinguished caller that does something between the arrival of all and their
    /// release: gather() waits for the others, open() lets them go. The others call follow() instead of pass().
    bool gather(std::uint32_t streams, bool spin, Watch& watch);
    void open();
    bool follow(std::uint32_t streams, bool spin, Watch& watch);

    /// How many times the gate has opened.
    std::uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

    /// Wakes everybody to look at the watch now instead of at the end of their time-out.
    void alarm();

 private:
    // Each word has a cache line of its own: the arriving write one, the waiting read another.
    alignas(64) std::atomic<std::uint32_t> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> full_{0};  // the generation that all have reached
    alignas(64) std::atomic<std::uint32_t> generation_{0};
};

}  // namespace sonde::ranks
