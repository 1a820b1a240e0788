// SPDX-License-Identifier: Apache-2.0
// Load that other users of the machine make.
#include "model/core.hpp"

#include <algorithm>

namespace sonde::simulate {

/// A request of other users at random times: an M/G/1 queue. Without calls or requests in flight the others pause, so
/// that a simulation ends.
void Core::submit_neighbor_request(std::uint32_t index) {
    StorageTarget& target = targets[index];
    target.neighbor_planned = false;
    if (neighbor_share <= 0) {
        return;
    }
    Medium* medium = target.site.medium >= 0 ? &media[static_cast<std::size_t>(target.site.medium)] : nullptr;
    MediaRequest request;
    request.object =
        ~0ULL - 1 - random.integer_below(64);  // files of other users: never sequential to the last request
    request.offset = random.integer_below(1U << 20U) << 20U;
    request.length = 1U << 20U;
    request.is_write = true;
    const double rate = target.site.rate.write > 0 ? target.site.rate.write
                        : medium != nullptr        ? medium->site.rate.write
                                                   : 0;
    if (rate <= 0) {
        return;
    }
    if (in_flight_count > 0) {
        serve_request(target, medium, request, now);
        TargetTrace& trace = traces.targets[index];
        trace.write_bytes.add(request.length);
        trace.neighbor_bytes += request.length;
    }
    const double mean_s = static_cast<double>(request.length) / (rate * neighbor_share);
    target.neighbor_planned = true;
    push(add_time(now, std::max<Time>(seconds_to_time(mean_s * random.exponential()), 1)), EventKind::neighbor_request,
         index);
}

/// Counts the calls of other users at the metadata servers since the last count: as many getattr calls as occupy the
/// threads for their share of the time.
void Core::count_background_metadata() {
    const Time since = now - background_counted_until;
    background_counted_until = now;
    if (metadata_share <= 0) {
        return;
    }
    for (std::size_t i = 0; i < site.metadata_servers.size(); ++i) {
        const ServerSite& server = servers[static_cast<std::size_t>(site.metadata_servers[i])].site;
        if (server.stat > 0) {
            const double call_count = metadata_share * server.threads * to_seconds(since) / to_seconds(server.stat);
            ServerTrace& trace = traces.metadata[i];
            trace.background_stats += call_count;
            trace.background_us = static_cast<std::uint64_t>(server.stat / 1000);
        }
    }
}

}  // namespace sonde::simulate
