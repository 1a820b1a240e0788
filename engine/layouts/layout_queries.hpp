// SPDX-License-Identifier: Apache-2.0
// Reads layouts of files on any kind of file system in the list.
#pragma once

#include "layouts/ceph_placement.hpp"
#include "layouts/layout_system.hpp"
#include "layouts/stripe_layout.hpp"
#include "patterns/stripes.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sonde::layouts {

/// Returns whether files on this type of file system (as in /proc/mounts) may have a layout that can be read.
bool has_layouts(const std::string& file_system);

/// Returns whether object placement must be queried from the monitors, once a run.
bool needs_placement(const std::string& file_system);

/// Files of a phase whose layouts are read. Each query costs a request to the metadata server, or starts a program on
/// BeeGFS, GPFS and MooseFS; layouts of local files fill the record.
std::uint64_t max_layout_queries(const std::string& file_system);

/// The layout of the file at `path`; absent when the file system does not report one. Throws std::invalid_argument with
/// one sentence when its report is not a layout, and std::runtime_error when its program does not answer. With
/// SONDE_PRETEND_LAYOUTS=FOLDER, for tests, FOLDER/NAME contains the attribute `lustre.lov` of a file called NAME.
/// `placement` gives the OSDs of CephFS; without it the pool is the target.
std::optional<StripeLayout> read_layout(const std::string& path, const CephPlacement* placement = nullptr);

/// Explains why a file that holds bytes has no readable layout on a file system of this type.
MissingLayout explain_missing_layout(const std::string& path, const std::string& file_system);

/// The layout in a form that gives each byte the one target that serves it; empty when that is unknown: no layout, one
/// that cannot be read, or several copies, of which any may serve.
patterns::FileStripes to_file_stripes(const StripeLayout& layout);

/// Returns a function that reads this form for files below `directory` while operations are timed: it never starts a
/// program. Empty where targets cannot be distinguished: on BeeGFS and GPFS, whose layouts come from programs, and on a
/// local file system with one drive. `placement` must outlive the function.
std::function<patterns::FileStripes(const std::string& path)> make_stripes_reader(const std::string& directory,
                                                                                  const std::string& file_system,
                                                                                  const CephPlacement* placement);

}  // namespace sonde::layouts
