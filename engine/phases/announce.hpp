// SPDX-License-Identifier: Apache-2.0
// What the record says of a phase before it begins.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "treatments/residency.hpp"

#include <cstddef>

namespace sonde::phases {

/// Writes the record's `phase_begin` line, and tells the board how much is planned. All processes call it, when the
/// meters of their streams say what these plan to do. `residency` is that of the root's node.
void announce(const Context& context, std::size_t index, const files::FileMap& map,
              const treatments::Residency& residency);

}  // namespace sonde::phases
