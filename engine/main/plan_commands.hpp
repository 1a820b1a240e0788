// SPDX-License-Identifier: Apache-2.0
// Reading the text of a plan, and the output of --dry-run.
#pragma once

#include "plan/plan.hpp"

#include <string>

namespace sonde {

/// The text of a plan; "-" is standard input. Throws plan::PlanError with one sentence.
std::string read_plan(const std::string& path);

/// Checks the plan on this machine and prints one line a phase. Returns an exit code.
int print_dry_run(const plan::Plan& plan);

}  // namespace sonde
