// SPDX-License-Identifier: Apache-2.0
// The JSON Schema of plans, from their declaration. `tools/schemas` writes it to schema/plan/plan.schema.json.
#pragma once

#include "plan/capabilities.hpp"

#include <nlohmann/json.hpp>

namespace sonde::plan {

/// Draft 2020-12, with the additional keyword `instead_of`: members that this one excludes.
nlohmann::ordered_json build_schema(const Capabilities& capabilities);

}  // namespace sonde::plan
