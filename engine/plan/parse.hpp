// SPDX-License-Identifier: Apache-2.0
// From JSON text to a Plan, and what is wrong with it in one sentence.
#pragma once

#include "plan/offer.hpp"
#include "plan/plan.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace sonde::plan {

/// A plan that cannot be run as written. what() names the place ("phases[1].stop.time"), what was found and what would
/// be right. Exit code 2.
struct PlanError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// For rules between members: throws "plan: <where> <complaint>".
[[noreturn]] void refuse(const std::string& where, const std::string& complaint);

/// Reads and checks a plan (schema/plan/plan.schema.json). Everything that does not need the machine is checked here:
/// members, types, ranges, the rules between members (check.hpp), and whether there is what it names. Throws PlanError.
Plan parse_plan(std::string_view json_text, const Offer& offer);

}  // namespace sonde::plan
