// SPDX-License-Identifier: Apache-2.0
// Numbers of a system file that the model does not use.
#pragma once

#include "system/system_model.hpp"
#include "system/system_parts.hpp"

namespace sonde::simulate {

/// Adds a sentence to `site.unused` for each member that parts of the system state and the model does not use.
void add_unused_numbers(SystemModel& site, const SystemParts& system);

}  // namespace sonde::simulate
