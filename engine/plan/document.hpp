// SPDX-License-Identifier: Apache-2.0
// Parses JSON text, with error messages for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace sonde::plan {

/// Throws PlanError for text that is not JSON, has a duplicate member, or is nested too deeply.
nlohmann::json parse_document(std::string_view text);

}  // namespace sonde::plan
