// SPDX-License-Identifier: Apache-2.0
// Says in the record on which targets the files of a phase lie.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"

#include <cstddef>

namespace sonde::phases {

/// Whether files of the phase may have a layout that can be read: the same on all processes.
bool may_have_layouts(const Context& context, const plan::Phase& phase);

/// Finds out, once a run and before a phase is timed, what layouts alone do not tell: where CephFS keeps objects. By
/// the root, for all; called by every process.
void ask_placement(Context& context, const plan::Phase& phase);

/// Writes the line `layout` of a phase that worked on data files. At the root, when the phase is over; nothing where
/// the file system tells no layouts.
void write_layouts(const Context& context, std::size_t index, const files::FileMap& map);

}  // namespace sonde::phases
