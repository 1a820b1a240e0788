// SPDX-License-Identifier: Apache-2.0
// Reads the data part of a plan: files, access, I/O, payload, pace.
#pragma once

#include "plan/plan.hpp"
#include "plan/reader.hpp"

namespace sonde::plan {

/// The member `data` of the plan, or of a phase merged with it.
Data read_data(const Reader& in);

/// A number of bytes, or an object with a fraction of node memory.
Amount read_amount(const Reader& parent, const char* key);

/// Checks a phase's `access` and `io` before the merge, so that errors name the phase.
void check_phase_data(const Reader& phase);

/// The plan's data merged with the members of the phase (overlay.hpp).
nlohmann::json overlay_data(const nlohmann::json& data, const Reader& phase);

}  // namespace sonde::plan
