// SPDX-License-Identifier: Apache-2.0
// Verification after a write: a phase of its own that reads what the phase wrote.
#pragma once

#include "phases/context.hpp"

#include <cstddef>

namespace sonde::phases {

/// With verify = "readback" everything that phase `index` wrote is read again, by another task, untimed; else nothing
/// is done. Writes the record's `verification` line. All processes call it. False when the run must end; what is wrong
/// in the data is an outcome, and no reason to end.
bool read_back(Context& context, std::size_t index);

}  // namespace sonde::phases
