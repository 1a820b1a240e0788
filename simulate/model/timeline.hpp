// SPDX-License-Identifier: Apache-2.0
// The clock of the machine, its pending events, its random numbers, and the number of calls and requests in flight.
#pragma once

#include "kernel/event_queue.hpp"
#include "kernel/random.hpp"

#include <algorithm>
#include <cstdint>

namespace sonde::simulate {

/// The subject of an event is an index of the kind in its comment.
enum class EventKind : std::uint32_t {
    call_begins,       ///< call: the client has spent its processor time on it
    next_link,         ///< request: its first byte is at the next link
    at_server,         ///< request: its last byte is at the server
    at_media,          ///< request: the server passes it to the target
    media_done,        ///< request
    at_client,         ///< request: its data or its answer is at the client
    metadata_call,     ///< call: at the metadata server
    metadata_done,     ///< call: the answer is at the client
    alarm,             ///< alarm
    neighbor_request,  ///< target: a request of other users
    sample,            ///< none
    fault,             ///< planned fault
    fault_ends         ///< fault with an end
};

class Timeline {
 public:
    explicit Timeline(std::uint64_t seed) : random(seed, 0x6d616368696e65ULL) {}

    Time now() const noexcept { return now_; }
    void push(Time time, EventKind kind, std::uint32_t subject) {
        queue_.push(time, static_cast<std::uint32_t>(kind), subject);
    }
    bool is_empty() const noexcept { return queue_.is_empty(); }
    Time next_time() const noexcept { return queue_.next_time(); }
    /// Removes the earliest event and sets the clock to its time. There must be one.
    ScheduledEvent pop() {
        const ScheduledEvent event = queue_.pop();
        now_ = event.time;
        ++handled_event_count_;
        return event;
    }
    /// Sets the clock, which never goes back.
    void advance_to(Time time) noexcept { now_ = std::max(now_, time); }
    std::uint64_t handled_event_count() const noexcept { return handled_event_count_; }

    // Counts calls and requests in flight. At 0 the load of other users (BackgroundLoad) pauses.
    void begin_activity() noexcept { ++activity_count_; }
    void end_activity() noexcept { --activity_count_; }
    bool is_active() const noexcept { return activity_count_ > 0; }

    Random random;

 private:
    EventQueue queue_;
    Time now_ = 0;
    std::uint64_t handled_event_count_ = 0, activity_count_ = 0;
};

}  // namespace sonde::simulate
