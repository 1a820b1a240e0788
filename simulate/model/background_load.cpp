// SPDX-License-Identifier: Apache-2.0
#include "model/background_load.hpp"

#include <algorithm>

namespace sonde::simulate {

namespace {

constexpr std::uint64_t request_bytes = 1U << 20U;
/// 512 clients with eight requests each. Without a limit the queue of a target that is slower than their load grows
/// forever, and each request of the run waits longer than all before it.
constexpr std::size_t max_requests_in_flight = 4096;
constexpr Time longest_replay = 10'000'000'000;  ///< ns; queues forget what was earlier

}  // namespace

BackgroundLoad::BackgroundLoad(StorageServers& storage, Timeline& timeline)
    : storage_(storage),
      timeline_(timeline),
      is_planned_(storage.target_count(), false),
      postponed_(storage.target_count(), no_time),
      request_ends_(storage.target_count()) {
}

void BackgroundLoad::set_share(double share) {
    share_ = share;
    for (std::uint32_t target = 0; share > 0 && target < is_planned_.size(); ++target) {
        if (!is_planned_[target] && storage_.write_rate(target) > 0) {
            is_planned_[target] = true;
            timeline_.push(timeline_.now(), EventKind::neighbor_request, target);
        }
    }
}

/// Time until the next request of a target, exponential.
Time BackgroundLoad::draw_gap(std::uint32_t target) {
    const double mean_s = static_cast<double>(request_bytes) / (storage_.write_rate(target) * share_);
    return std::max<Time>(seconds_to_time(mean_s * timeline_.random.exponential()), 1);
}

void BackgroundLoad::submit_one(std::uint32_t target, Time time) {
    MediaRequest request;
    request.object =
        ~0ULL - 1 - timeline_.random.integer_below(64);  // files of other users: never sequential to the last request
    request.offset = timeline_.random.integer_below(1U << 20U) << 20U;
    request.length = request_bytes;
    request.is_write = true;
    std::deque<Time>& ends = request_ends_[target];
    while (!ends.empty() && ends.front() <= time) {
        ends.pop_front();
    }
    if (ends.size() < max_requests_in_flight) {
        ends.push_back(storage_.submit_neighbor_request(target, request, time));
    }
}

void BackgroundLoad::submit_request(std::uint32_t target) {
    is_planned_[target] = false;
    if (share_ <= 0) {
        return;
    }
    const Time now = timeline_.now();
    if (!timeline_.is_active()) {
        postponed_[target] = now;
        return;
    }
    submit_one(target, now);
    is_planned_[target] = true;
    timeline_.push(add_time(now, draw_gap(target)), EventKind::neighbor_request, target);
}

void BackgroundLoad::resume() {
    const Time now = timeline_.now();
    for (std::uint32_t target = 0; share_ > 0 && target < postponed_.size(); ++target) {
        if (postponed_[target] == no_time) {
            continue;
        }
        Time due = postponed_[target];
        postponed_[target] = no_time;
        if (due < now - longest_replay) {  // gaps have no memory
            due = now - longest_replay + draw_gap(target);
        }
        for (; due <= now; due = add_time(due, draw_gap(target))) {
            submit_one(target, due);
        }
        is_planned_[target] = true;
        timeline_.push(due, EventKind::neighbor_request, target);
    }
}

}  // namespace sonde::simulate
