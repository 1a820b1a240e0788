// SPDX-License-Identifier: Apache-2.0
// The members with which the record's lines about a phase begin.
#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>

namespace sonde::phases {

/// `phase`, `index` and `op`, then the members of `line`.
nlohmann::ordered_json of_phase(const plan::Phase& phase, std::size_t index, const nlohmann::ordered_json& line);

}  // namespace sonde::phases
