// SPDX-License-Identifier: Apache-2.0
// Removes what a run has made. Every directory is held open from before its files are listed until it is removed
// itself; no path is looked up twice, and no symbolic link is followed.
#pragma once

#include "files/manifest.hpp"
#include "files/removal_steps.hpp"
#include "files/run_directories.hpp"

#include <string>

namespace sonde::files {

/// Removes the data files, trees, directories and manifest of one run. Looks at what is there instead of at all that
/// could be; what the manifest does not name stays, and its directory is named. A directory whose name stands for
/// another one by now stays too. The manifest goes last, only when all else is gone. `is_dry_run` only counts.
Removal remove_run(const RunDirectories& directories, const Manifest& manifest, bool is_dry_run);
/// Removes only files of tasks first … last-1: lets many processes share the work. No directories.
Removal remove_files(const std::string& directory, const Manifest& manifest, int first, int last);

}  // namespace sonde::files
