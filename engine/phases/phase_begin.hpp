// SPDX-License-Identifier: Apache-2.0
// The record's `phase_begin` line.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "treatments/residency.hpp"

#include <cstddef>

namespace sonde::phases {

/// Writes the record's `phase_begin` line and stores the planned operations in the board. All processes call it after
/// their streams have set the planned amounts in their meters. `residency` is that of the root's node.
void write_phase_begin(const RunContext& context, std::size_t index, const files::FileMap& map,
                       const treatments::Residency& residency);

}  // namespace sonde::phases
