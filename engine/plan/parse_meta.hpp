// SPDX-License-Identifier: Apache-2.0
// Reads the metadata part of a plan, and the rules between its members.
#pragma once

#include "plan/plan.hpp"
#include "plan/reader.hpp"

namespace sonde::plan {

/// The member `meta`; members of the data part (backend, paced, payload, verify) are read by derive_data().
Meta read_meta(const Reader& in);

/// The plan's `meta` merged with that of the phase, member by member.
nlohmann::json overlay_meta(const nlohmann::json& base, const nlohmann::json& own_meta);

/// Derives the phase's data from `meta`: backend, paced, payload, verify, and a transfer as long as the longest file.
nlohmann::json derive_data(const nlohmann::json& meta, const Meta& read);

/// The rules between members of one phase. Throws PlanError.
void check_meta(const std::string& where, const Plan& plan, std::size_t index);

}  // namespace sonde::plan
