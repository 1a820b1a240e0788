// SPDX-License-Identifier: Apache-2.0
// Stations of a queueing network with first-come, first-served order. reserve() must be called in the order of
// arrival, which the event queue ensures. The end of a service is then known at its arrival and needs no event.
#pragma once

#include "kernel/time.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace sonde::simulate {

/// A station with one server: a link, a disk, a journal.
class SingleServerStation {
 public:
    struct ServiceInterval {
        Time start = 0, end = 0;
    };
    ServiceInterval reserve(Time now, Time length) noexcept {
        const Time start = std::max(now, free_at_);
        free_at_ = add_time(start, length);
        busy_ = add_time(busy_, length);
        return {start, free_at_};
    }
    Time free_time() const noexcept { return free_at_; }
    Time busy_time() const noexcept { return busy_; }  ///< sum of all services

 private:
    Time free_at_ = 0, busy_ = 0;
};

/// A station with several servers and one queue: threads, a command queue.
class MultiServerStation {
 public:
    /// A `count` of 0 means no limit.
    explicit MultiServerStation(std::size_t count = 1) : free_times_(count, 0) {}

    SingleServerStation::ServiceInterval reserve(Time now, Time length) {
        busy_ = add_time(busy_, length);
        if (free_times_.empty()) {
            return {now, add_time(now, length)};
        }
        const Time start = std::max(now, free_times_.front());
        std::pop_heap(free_times_.begin(), free_times_.end(), std::greater<>());
        free_times_.back() = add_time(start, length);
        std::push_heap(free_times_.begin(), free_times_.end(), std::greater<>());
        return {start, add_time(start, length)};
    }
    std::size_t server_count() const noexcept { return free_times_.size(); }
    Time busy_time() const noexcept { return busy_; }

 private:
    std::vector<Time> free_times_;  ///< when each server is free; a min-heap
    Time busy_ = 0;
};

}  // namespace sonde::simulate
