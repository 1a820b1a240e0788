// SPDX-License-Identifier: Apache-2.0
// The first members of the record's lines about a phase.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>

namespace sonde::phases {

/// `phase`, `index` and `op`, then the members of `line`.
nlohmann::ordered_json with_phase_members(const plan::Phase& phase, std::size_t index,
                                          const nlohmann::ordered_json& line);

}  // namespace sonde::phases
