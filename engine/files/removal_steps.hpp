// SPDX-License-Identifier: Apache-2.0
// The steps of which every removal consists, and their count.
#pragma once

#include "files/confined_directory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::files {

struct Removal {
    std::uint64_t files = 0, directories = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> remaining;  ///< what could not be removed or is not ours, one sentence each
};

/// Why a directory was not opened, in one sentence.
std::string unopened_text(const ConfinedDirectory& directory);

/// Removes one regular file from an open directory, or with `is_dry_run` only counts it. True when it is gone.
bool remove_regular_file(const ConfinedDirectory& parent, const std::string& name, bool is_dry_run, Removal& removal);

/// Removes a directory of `parent` that is empty and still open, or with `is_dry_run` only counts it. False, with a
/// sentence, when it stays, for instance because its name stands for another directory by now.
bool remove_emptied(const ConfinedDirectory& parent, const ConfinedDirectory& child, bool is_dry_run, Removal& removal);

}  // namespace sonde::files
