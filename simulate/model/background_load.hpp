// SPDX-License-Identifier: Apache-2.0
// Requests that other users of the machine submit to its targets.
#pragma once

#include "model/storage_servers.hpp"
#include "model/timeline.hpp"

#include <cstdint>
#include <vector>

namespace sonde::simulate {

class BackgroundLoad {
 public:
    BackgroundLoad(StorageServers& storage, Timeline& timeline);

    /// Other users write at this share of the rate of each target; 0: they stop.
    void set_share(double share);
    /// Submits the request that is due at a target, and plans the next one: an M/G/1 queue. Without calls or requests
    /// in flight the others pause, so that a simulation ends.
    void submit_request(std::uint32_t target);

 private:
    StorageServers& storage_;
    Timeline& timeline_;
    std::vector<bool> is_planned_;  ///< by target: the event of the next request is pending
    double share_ = 0;
};

}  // namespace sonde::simulate
