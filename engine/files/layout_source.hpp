// SPDX-License-Identifier: Apache-2.0
// Asks the file system for the layout of a file.
#pragma once

#include "files/ceph_placement.hpp"
#include "files/stripe_layout.hpp"
#include "patterns/stripes.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sonde::files {

/// True where files of this type of file system (as in /proc/mounts) may have a layout that we can read.
bool has_layouts(const std::string& file_system);

/// Returns whether the placement of objects must be queried, once a run.
bool has_placement(const std::string& file_system);

/// Files of a phase that are asked for theirs. Each costs a request to the metadata server, or, on BeeGFS, GPFS and
/// MooseFS, a program that is started; of local files it fills the record.
std::uint64_t most_layouts(const std::string& file_system);

/// The layout of the file at `path`; absent when the file system does not tell. Throws std::invalid_argument with one
/// sentence when what it tells is not a layout, and std::runtime_error when its program does not answer. With
/// SONDE_PRETEND_LAYOUTS=FOLDER, for tests, the attribute is the content of FOLDER/NAME for a file called NAME, and
/// absent without such a file. On CephFS `placement` tells OSDs; without it, or when it knows nothing, the pool stands
/// for them.
std::optional<StripeLayout> layout_of(const std::string& path, const CephPlacement* placement = nullptr);

/// Why a file that holds bytes told no layout on a file system of this type, and what to do about it.
struct Untold {
    std::string why;  ///< empty: no layout is expected there
    std::string advice;
};
Untold why_untold(const std::string& path, const std::string& file_system);

/// A layout in the form that says of each byte which one target serves it; empty when nobody can tell: no layout, one
/// that cannot be read, or several copies, of which any may serve.
patterns::FileStripes stripes_of(const StripeLayout& layout);

/// Asks for that of files below `directory`, on a file system of this type, while operations are being timed: never
/// starts a program. Empty where it could not tell one target from another: on BeeGFS and GPFS, whose layouts are told
/// by programs, and on a local file system with one drive. `placement` has to outlive it.
std::function<patterns::FileStripes(const std::string& path)> stripes_asker(const std::string& directory,
                                                                            const std::string& file_system,
                                                                            const CephPlacement* placement = nullptr);

}  // namespace sonde::files
