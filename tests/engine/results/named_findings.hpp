// SPDX-License-Identifier: Apache-2.0
// Findings as one short text: what was found, and how bad it is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sonde::tests {

/// "severity:id" of each, with a space between them; empty when nothing was found.
inline std::string names_of(const std::vector<nlohmann::ordered_json>& findings) {
    std::string all;
    for (const auto& finding : findings) {
        all += (all.empty() ? "" : " ") + finding.at("severity").get<std::string>() + ":" +
               finding.at("id").get<std::string>();
    }
    return all;
}

}  // namespace sonde::tests
