// SPDX-License-Identifier: Apache-2.0
// The record's `layout` line: storage targets of the files of a phase.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"

#include <cstddef>

namespace sonde::phases {

/// Whether files of the phase may have a readable layout. Equal in all processes.
bool may_have_layouts(const RunContext& context, const plan::Phase& phase);

/// Queries the placement of CephFS objects once per run, before the timed part of a phase. The root queries and
/// broadcasts; every process calls it.
void query_placement(RunContext& context, const plan::Phase& phase);

/// Writes the `layout` line of a phase on data files. At the root, after the phase; nothing on file systems that do not
/// report layouts.
void write_layouts(const RunContext& context, std::size_t index, const files::FileMap& map);

}  // namespace sonde::phases
