// SPDX-License-Identifier: Apache-2.0
// Requests that a file system stripes new files over its targets as a plan asks. layout_queries.hpp reads back what
// was granted.
#pragma once

#include "files/confined_directory.hpp"
#include "layouts/stripe_layout.hpp"
#include "plan/plan.hpp"

#include <string>

namespace sonde::layouts {

/// Throws std::invalid_argument with one sentence when a file system of this type (as in /proc/mounts) cannot grant the
/// request. `own_directory`: the run makes a directory with these stripes, which its files inherit; else each file is
/// striped.
void check_striping(const plan::Striping& requested, const std::string& file_system, const std::string& path,
                    bool own_directory);

/// Stripes the files that are made in the directory from now on. Throws std::invalid_argument with one sentence.
void stripe_directory(const plan::Striping& requested, const std::string& file_system,
                      const files::ConfinedDirectory& directory);

/// Makes an empty file, which must not exist, with these stripes. Throws std::invalid_argument with one sentence.
void make_striped_file(const plan::Striping& requested, const std::string& file_system,
                       const files::ConfinedDirectory& parent, const std::string& name);

/// Differences between the requested and the granted layout, as "2 targets instead of 4, stripes of 1 MiB instead of 4
/// MiB"; empty when there are none.
std::string describe_difference(const plan::Striping& requested, const StripeLayout& granted);

}  // namespace sonde::layouts
