// SPDX-License-Identifier: Apache-2.0
// Servers, media and targets of a file system.
#pragma once

#include "system/system_model.hpp"
#include "system/system_parts.hpp"

namespace sonde::simulate {

/// Adds the storage of the file system. Throws SystemModelError when no part gives the rate of a target.
void add_storage(SystemModel& site, const SystemParts& system);

}  // namespace sonde::simulate
