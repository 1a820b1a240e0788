// SPDX-License-Identifier: Apache-2.0
// Requests that other users of the machine submit to its targets.
#pragma once

#include "model/storage_servers.hpp"
#include "model/timeline.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace sonde::simulate {

class BackgroundLoad {
 public:
    BackgroundLoad(StorageServers& storage, Timeline& timeline);

    /// Other users write at this share of the rate of each target; 0: they stop.
    void set_share(double share);
    /// Submits the request that is due at a target, and plans the next one: an M/G/1 queue. Without calls or requests
    /// in flight no event is planned, so that time can pass at no cost; resume() makes up for it.
    void submit_request(std::uint32_t target);
    /// The first call after a time without any: submits the requests of that time (of its last ten seconds).
    void resume();

 private:
    StorageServers& storage_;
    Timeline& timeline_;
    /// Submits a request, unless the other users wait for as many as they can have in flight.
    void submit_one(std::uint32_t target, Time time);
    Time draw_gap(std::uint32_t target);

    std::vector<bool> is_planned_;  ///< by target: the event of the next request is pending
    std::vector<Time> postponed_;   ///< by target: when the next request is due that has no event; `never`: none
    std::vector<std::deque<Time>> request_ends_;  ///< by target: when those in flight are done, first sent first
    double share_ = 0;
};

}  // namespace sonde::simulate
