// SPDX-License-Identifier: Apache-2.0
// Removes what a run has made in its directory without being led astray: by descriptors, never through a symbolic link.
#pragma once

#include "files/manifest.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::files {

struct Removal {
    std::uint64_t files = 0, directories = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> left;  ///< what could not be removed or is not ours, one sentence each
};

/// Removes the data files, directories and manifest of one run directory. Looks at what is there instead of at all that
/// could be; what the manifest does not name stays, and its directory is named. Follows no symbolic link, so it never
/// leaves `directory`. `dry` only counts.
Removal remove_run(const std::string& directory, const Manifest& manifest, bool dry);
/// Removes only files of tasks first … last-1: lets many processes share the work. No directories.
Removal remove_files(const std::string& directory, const Manifest& manifest, int first, int last, bool dry);

}  // namespace sonde::files
