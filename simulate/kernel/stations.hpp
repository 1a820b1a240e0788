// SPDX-License-Identifier: Apache-2.0
// Where requests wait for their turn. First come, first served; whoever asks must ask in the order of arrival, which
// the event queue gives. Then the end of a service is known when it is asked for, and no event is needed for it.
#pragma once

#include "kernel/time.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace sonde::simulate {

/// One server: a link, a disk, a journal.
class Fifo {
 public:
    struct Service {
        Time start = 0, end = 0;
    };
    Service reserve(Time now, Time length) noexcept {
        const Time start = std::max(now, free_);
        free_ = later(start, length);
        busy_ = later(busy_, length);
        return {start, free_};
    }
    Time free_at() const noexcept { return free_; }
    Time busy() const noexcept { return busy_; }  ///< sum of all services

 private:
    Time free_ = 0, busy_ = 0;
};

/// Several servers with one queue: threads, a command queue.
class Slots {
 public:
    /// `count` of 0 is no limit.
    explicit Slots(std::size_t count = 1) : free_(count, 0) {}

    Fifo::Service reserve(Time now, Time length) {
        busy_ = later(busy_, length);
        if (free_.empty()) {
            return {now, later(now, length)};
        }
        const Time start = std::max(now, free_.front());
        std::pop_heap(free_.begin(), free_.end(), std::greater<>());
        free_.back() = later(start, length);
        std::push_heap(free_.begin(), free_.end(), std::greater<>());
        return {start, later(start, length)};
    }
    std::size_t count() const noexcept { return free_.size(); }
    Time busy() const noexcept { return busy_; }

 private:
    std::vector<Time> free_;  ///< a heap: the one that is free first is in front
    Time busy_ = 0;
};

}  // namespace sonde::simulate
