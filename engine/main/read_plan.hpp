// SPDX-License-Identifier: Apache-2.0
// Where the text of a plan comes from, and what a plan would do.
#pragma once

#include "plan/plan.hpp"

#include <string>

namespace sonde {

/// The text of a plan; "-" is standard input. Throws plan::PlanError with one sentence.
std::string read_plan(const std::string& path);

/// Checks the plan on this machine and prints one line a phase. Returns an exit code.
int say_what_would_be_done(const plan::Plan& plan);

}  // namespace sonde
