// SPDX-License-Identifier: Apache-2.0
// The storage of a file system, and the ways that lead to it.
#pragma once

#include "system/parts.hpp"
#include "system/site.hpp"

namespace sonde::simulate {

/// Servers, media and targets of the file system. Throws SiteError when nothing says how fast a target is.
void add_storage(SiteModel& site, const Parts& system);

/// Adapters of clients and servers, routers, forwarders, and of local storage the links to its controllers.
void add_ways(SiteModel& site, const Parts& system, const nlohmann::json& mount);

}  // namespace sonde::simulate
