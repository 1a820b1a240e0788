// SPDX-License-Identifier: Apache-2.0
// Tells a file system how new files are to be spread over its targets: Lustre (and `sonde mount`, which speaks its
// attribute), BeeGFS and CephFS. What it made of the wish, `layout_source` reads back.
#pragma once

#include "files/confined_directory.hpp"
#include "files/stripe_layout.hpp"
#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace sonde::files {

/// Throws std::invalid_argument with one sentence when a file system of this type (as in /proc/mounts) cannot do what
/// is wanted. `own_directory`: it is set on a directory that the run makes, and files inherit it; else on each file.
void check_striping(const plan::Striping& wanted, const std::string& file_system, const std::string& path,
                    bool own_directory);

/// What is made in the directory from now on is striped so. Throws std::invalid_argument with one sentence.
void stripe_directory(const plan::Striping& wanted, const std::string& file_system, const ConfinedDirectory& directory);

/// Makes an empty file, which must not exist, with these stripes. Throws std::invalid_argument with one sentence.
void make_striped_file(const plan::Striping& wanted, const std::string& file_system, const ConfinedDirectory& parent,
                       const std::string& name);

/// Differences between the requested and the actual layout, as "2 targets instead of 4, stripes of 1 MiB instead of 4
/// MiB"; empty: nothing.
std::string difference(const plan::Striping& wanted, const StripeLayout& granted);

/// The wish in the form of each: struct lov_user_md_v1, or _v3 with a pool; the value of `ceph.dir.layout`; the words
/// of a command.
std::string lustre_form(const plan::Striping& wanted);
std::string ceph_form(const plan::Striping& wanted);
std::vector<std::string> beegfs_command(const plan::Striping& wanted, const std::string& directory);

}  // namespace sonde::files
