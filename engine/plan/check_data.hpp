// SPDX-License-Identifier: Apache-2.0
// The rules between members of a phase that works on data files. Errors are one sentence with the remedy.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sonde::plan {

/// `where` names the phase ("phases[2]"). Throws PlanError.
void check_data(const std::string& where, const Plan& plan, std::size_t index, const Capabilities& capabilities);

/// Whether `tasks` tasks with `segments` segments each stay within the largest file (4 EiB). Called by check_data where
/// the plan gives the segments; otherwise as soon as they are known.
bool fits_in_file(const Data& data, std::uint64_t segments, std::uint64_t tasks);

}  // namespace sonde::plan
