// SPDX-License-Identifier: Apache-2.0
// Pending events by time: a heap with four children per node in one array. Events of the same time are returned in
// the order of push(), so that a run is deterministic. A heap of 24-byte values fits the processor's cache for the tens
// of thousands of pending events of a simulated machine (HACKING.md has the measurements).
#pragma once

#include "kernel/time.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sonde::simulate {

struct ScheduledEvent {
    Time time = 0;
    std::uint64_t order = 0;    ///< set by the queue
    std::uint32_t kind = 0;     ///< EventKind of the model
    std::uint32_t subject = 0;  ///< index of the object that the event concerns
};

class EventQueue {
 public:
    void push(Time time, std::uint32_t kind, std::uint32_t subject) {
        heap_.push_back({});
        const ScheduledEvent event{time, ++push_count_, kind, subject};
        std::size_t index = heap_.size() - 1;
        while (index > 0) {
            const std::size_t parent = (index - 1) / arity;
            if (!is_before(event, heap_[parent])) {
                break;
            }
            heap_[index] = heap_[parent];
            index = parent;
        }
        heap_[index] = event;
    }

    /// Removes and returns the earliest event. The queue must not be empty.
    ScheduledEvent pop() {
        const ScheduledEvent first = heap_.front();
        const ScheduledEvent last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) {
            sift_down(last);
        }
        return first;
    }

    bool is_empty() const noexcept { return heap_.empty(); }
    /// Time of the earliest event; `never` when empty.
    Time next_time() const noexcept { return heap_.empty() ? no_time : heap_.front().time; }

 private:
    static constexpr std::size_t arity = 4;

    static bool is_before(const ScheduledEvent& a, const ScheduledEvent& b) noexcept {
        return a.time != b.time ? a.time < b.time : a.order < b.order;
    }

    /// Replaces the root by `event` and restores the heap order.
    void sift_down(const ScheduledEvent& event) {
        const std::size_t size = heap_.size();
        std::size_t index = 0;
        for (;;) {
            const std::size_t first = index * arity + 1;
            if (first >= size) {
                break;
            }
            const std::size_t end = first + arity < size ? first + arity : size;
            std::size_t earliest = first;
            for (std::size_t child = first + 1; child < end; ++child) {
                earliest = is_before(heap_[child], heap_[earliest]) ? child : earliest;
            }
            if (!is_before(heap_[earliest], event)) {
                break;
            }
            heap_[index] = heap_[earliest];
            index = earliest;
        }
        heap_[index] = event;
    }

    std::vector<ScheduledEvent> heap_;
    std::uint64_t push_count_ = 0;
};

}  // namespace sonde::simulate
