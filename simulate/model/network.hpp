// SPDX-License-Identifier: Apache-2.0
// The links between clients and storage: adapters, routers, forwarders, channels and controllers, and the routes of
// requests over them.
#pragma once

#include "kernel/stations.hpp"
#include "model/client_table.hpp"
#include "model/monitoring_data.hpp"
#include "model/storage.hpp"
#include "model/storage_request.hpp"
#include "system/system_model.hpp"

#include <cstdint>
#include <vector>

namespace sonde::simulate {

class Network {
 public:
    Network(const SystemModel& site, NoiseSeeds& seeds, MonitoringData& monitoring);

    /// Chooses the links of a request, from the client on. `server` may be null.
    void choose_route(StorageRequest& request, Client& client, StorageTarget& target, const Server* server);
    /// Passes the next link of a request, whose first byte arrives at `head`: towards storage for a write, towards the
    /// client for a read. Returns when its first and last bytes are at the other end.
    Link::LinkTransit transmit_over_next_link(StorageRequest& request, Time head);
    /// Time of a message without data, in one direction.
    Time message_time(const StorageRequest& request) const;
    Time metadata_message_time(const Client& client, const Server& server) const;
    /// A client uses all forwarders in turn, as the planner of routes assumes (lab/sonde/design/routes/paths.py).
    std::uint32_t choose_forwarder(Client& client) const;
    /// When a thread of the forwarder has forwarded a call that arrives at that time; `arrival` without forwarders.
    Time reserve_forwarder(std::uint32_t forwarder, Time arrival);

    const std::vector<Link>& links() const { return links_; }
    const MultiServerStation& forwarder_threads(std::size_t forwarder) const { return forwarders_[forwarder]; }
    /// Messages take `factor` times as long as described.
    void set_slowdown(int link, double factor);
    /// This share of the messages on a link is lost and sent again after 0.2 s, as TCP does.
    void set_lost_message_share(int link, double share) {
        links_[static_cast<std::size_t>(link)].lost_message_share = share;
    }
    /// The first of alternative paths gets this many times the share of another.
    void set_first_path_weight(double weight) { first_path_weight_ = weight; }
    void copy_link_counters(MonitoringData& monitoring) const;
    void remove_router(int link);
    void restore_router(int link);

 private:
    std::size_t choose_path(std::size_t choices, std::uint32_t& next_turn) const;
    void select_routers();

    const SystemModel& site_;
    std::vector<Link> links_;
    std::vector<int> working_routers_;            ///< links
    std::vector<std::uint32_t> routers_;          ///< links in use; each occurs as often as its weight
    std::vector<MultiServerStation> forwarders_;  ///< their threads
    double first_path_weight_ = 1;
    Random losses_;
};

}  // namespace sonde::simulate
