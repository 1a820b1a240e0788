// SPDX-License-Identifier: Apache-2.0
// The error of a plan that cannot be run as written.
#pragma once

#include <stdexcept>
#include <string>

namespace sonde::plan {

/// what() names the member ("phases[1].stop.time"), its value and what would be right. Exit code 2.
struct PlanError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// For rules between members: throws "plan: <where> <complaint>".
[[noreturn]] inline void throw_member_error(const std::string& where, const std::string& complaint) {
    throw PlanError("plan: " + where + " " + complaint);
}

}  // namespace sonde::plan
