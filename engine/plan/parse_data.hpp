// SPDX-License-Identifier: Apache-2.0
// Reads the data part of a plan: files, access, I/O, payload, pace.
#pragma once

#include "plan/plan.hpp"
#include "plan/reader.hpp"

namespace sonde::plan {

/// The member `data`, of the plan or of a phase laid over it.
Data read_data(const Reader& in);

/// A number of bytes, or an object that says of what it is a part.
Amount read_amount(const Reader& parent, const char* key);

/// Refuses what is wrong in a phase's own `access` and `io`, so that it is named where it stands and not where it is
/// laid over the plan's.
void check_own_data(const Reader& phase);

/// The plan's data with the phase's own members laid over it (overlay.hpp).
nlohmann::json overlay_data(const nlohmann::json& data, const Reader& phase);

}  // namespace sonde::plan
