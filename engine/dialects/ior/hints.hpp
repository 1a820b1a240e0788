// SPDX-License-Identifier: Apache-2.0
// Hints for MPI-IO as IOR takes them: `IOR_HINT__MPI__name=value`, in a file or in the environment.
#pragma once

#include <map>
#include <string>

namespace sonde::dialects::ior {

using Hints = std::map<std::string, std::string>;

/// Adds the hint of one line or variable to `hints`; other lines are comments. Hints for GPFS say nothing here.
void add_hint(Hints& hints, const std::string& line);
/// `hints` with what the file adds. Throws plan::PlanError when the file cannot be read.
Hints read_hints_of_file(const std::string& path, Hints hints);
/// From the variables of this process.
Hints read_hints_of_environment();

}  // namespace sonde::dialects::ior
