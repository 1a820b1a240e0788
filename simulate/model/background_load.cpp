// SPDX-License-Identifier: Apache-2.0
#include "model/background_load.hpp"

#include <algorithm>

namespace sonde::simulate {

BackgroundLoad::BackgroundLoad(StorageServers& storage, Timeline& timeline)
    : storage_(storage), timeline_(timeline), is_planned_(storage.target_count(), false) {
}

void BackgroundLoad::set_share(double share) {
    share_ = share;
    for (std::uint32_t target = 0; share > 0 && target < is_planned_.size(); ++target) {
        if (!is_planned_[target]) {
            is_planned_[target] = true;
            timeline_.push(timeline_.now(), EventKind::neighbor_request, target);
        }
    }
}

void BackgroundLoad::submit_request(std::uint32_t target) {
    is_planned_[target] = false;
    if (share_ <= 0) {
        return;
    }
    Random& random = timeline_.random;
    MediaRequest request;
    request.object =
        ~0ULL - 1 - random.integer_below(64);  // files of other users: never sequential to the last request
    request.offset = random.integer_below(1U << 20U) << 20U;
    request.length = 1U << 20U;
    request.is_write = true;
    const double rate = storage_.write_rate(target);
    if (rate <= 0) {
        return;
    }
    if (timeline_.is_active()) {
        storage_.submit_neighbor_request(target, request);
    }
    const double mean_s = static_cast<double>(request.length) / (rate * share_);
    is_planned_[target] = true;
    timeline_.push(add_time(timeline_.now(), std::max<Time>(seconds_to_time(mean_s * random.exponential()), 1)),
                   EventKind::neighbor_request, target);
}

}  // namespace sonde::simulate
