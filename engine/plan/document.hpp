// SPDX-License-Identifier: Apache-2.0
// JSON text as it stands in a file, with what is wrong with it in words.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace sonde::plan {

/// Throws PlanError for text that is not JSON, says a member twice, or is nested too deep.
nlohmann::json parse_document(std::string_view text);

}  // namespace sonde::plan
