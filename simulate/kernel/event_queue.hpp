// SPDX-License-Identifier: Apache-2.0
// What will happen, by time: a heap with four children a node in one array. Events of one moment come in the order in
// which they were put in, so that a run has one result. A heap of 24-byte values stays in the processor's cache for the
// tens of thousands of events that a simulated machine has pending (HACKING.md has the figures).
#pragma once

#include "kernel/time.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sonde::simulate {

struct Event {
    Time at = 0;
    std::uint64_t order = 0;    ///< given by the queue
    std::uint32_t kind = 0;     ///< what happens
    std::uint32_t subject = 0;  ///< to what: an index
};

class EventQueue {
 public:
    void push(Time at, std::uint32_t kind, std::uint32_t subject) {
        heap_.push_back({});
        const Event event{at, ++pushed_, kind, subject};
        std::size_t place = heap_.size() - 1;
        while (place > 0) {
            const std::size_t parent = (place - 1) / arity;
            if (!before(event, heap_[parent])) {
                break;
            }
            heap_[place] = heap_[parent];
            place = parent;
        }
        heap_[place] = event;
    }

    /// The earliest event, taken out. Not to be called when empty.
    Event pop() {
        const Event first = heap_.front();
        const Event last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) {
            sink(last);
        }
        return first;
    }

    bool empty() const noexcept { return heap_.empty(); }
    std::size_t size() const noexcept { return heap_.size(); }
    Time next() const noexcept { return heap_.empty() ? never : heap_.front().at; }
    /// All that were ever put in.
    std::uint64_t pushed() const noexcept { return pushed_; }

 private:
    static constexpr std::size_t arity = 4;

    static bool before(const Event& a, const Event& b) noexcept {
        return a.at != b.at ? a.at < b.at : a.order < b.order;
    }

    /// Puts `event` in the place of the first one and lets it sink.
    void sink(const Event& event) {
        const std::size_t size = heap_.size();
        std::size_t place = 0;
        for (;;) {
            const std::size_t first = place * arity + 1;
            if (first >= size) {
                break;
            }
            const std::size_t end = first + arity < size ? first + arity : size;
            std::size_t best = first;
            for (std::size_t child = first + 1; child < end; ++child) {
                best = before(heap_[child], heap_[best]) ? child : best;
            }
            if (!before(heap_[best], event)) {
                break;
            }
            heap_[place] = heap_[best];
            place = best;
        }
        heap_[place] = event;
    }

    std::vector<Event> heap_;
    std::uint64_t pushed_ = 0;
};

}  // namespace sonde::simulate
