// SPDX-License-Identifier: Apache-2.0
// Links between clients and servers: adapters, routers and forwarders.
#pragma once

#include "system/system_model.hpp"
#include "system/system_parts.hpp"

namespace sonde::simulate {

/// Sets the costs of a network on a link. Its latency counts once for each message that crosses the network: at the
/// link of the host that is farther from the storage.
void apply_network(LinkDescription& link, const nlohmann::json* network);

/// Adds the adapters of clients and servers, routers and forwarders. Throws SystemModelError when no router connects
/// the clients with their servers.
void add_links(SystemModel& site, const SystemParts& system, const nlohmann::json& mount);

}  // namespace sonde::simulate
