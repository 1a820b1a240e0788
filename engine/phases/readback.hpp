// SPDX-License-Identifier: Apache-2.0
// Verification after a write: a separate phase that reads the written data.
#pragma once

#include "phases/context.hpp"

#include <cstddef>

namespace sonde::phases {

/// With verify = "readback", another task reads everything that phase `index` wrote, untimed. Writes the record's
/// `verification` line. All processes call it. Returns false when the run must end. A mismatch sets the outcome but
/// does not end the run.
bool verify_by_readback(RunContext& context, std::size_t index);

}  // namespace sonde::phases
