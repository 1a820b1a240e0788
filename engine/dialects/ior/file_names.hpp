// SPDX-License-Identifier: Apache-2.0
// The files that -o names: several with '@', with a driver of ROMIO before them, one for each task.
#pragma once

#include "dialects/ior/settings.hpp"

#include <string>
#include <vector>

namespace sonde::dialects::ior {

/// The paths that -o names, without ROMIO's words for its drivers. Throws plan::PlanError when there is none.
std::vector<std::string> list_test_paths(const IorSettings& settings);

/// The word of a driver before a path, with its colon ("ufs:/scratch/f"), as ROMIO takes it; empty when there is none.
std::string find_driver_prefix(const std::string& path);
/// The one that a test names for MPI-IO. Throws plan::PlanError when it names several.
std::string romio_driver(const IorSettings& settings);

/// The name of the file that a task uses, without the number of the repetition (-m).
std::string get_test_path(const IorSettings& settings, int task = 0);

}  // namespace sonde::dialects::ior
