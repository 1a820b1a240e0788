// SPDX-License-Identifier: Apache-2.0
// Links between clients and storage: adapters, routers, forwarders, channels and controllers.
#pragma once

#include "system/site.hpp"
#include "system/system_parts.hpp"

namespace sonde::simulate {

/// Adds the adapters of clients and servers, routers and forwarders, and for local storage the links to its
/// controllers. Throws SiteError when no router connects the clients with their servers.
void add_links(SiteModel& site, const SystemParts& system, const nlohmann::json& mount);

}  // namespace sonde::simulate
