// SPDX-License-Identifier: Apache-2.0
// Links next to the drives: paths of local storage, controllers and enclosures.
#pragma once

#include "system/system_model.hpp"
#include "system/system_parts.hpp"

namespace sonde::simulate {

/// Adds links for the file-system log on local storage, the paths from nodes to controllers, and the controllers and
/// enclosures of all targets.
void add_storage_links(SystemModel& site, const SystemParts& system);

}  // namespace sonde::simulate
