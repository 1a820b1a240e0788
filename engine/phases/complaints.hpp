// SPDX-License-Identifier: Apache-2.0
// Agreement of all processes that none of them has a complaint.
#pragma once

#include "phases/context.hpp"

#include <string>

namespace sonde::phases {

/// Returns true when no process has a complaint (a sentence; empty = none). Otherwise the first complaint becomes the
/// outcome at the root, with exit code `code`, which must be equal in all processes. `phase` names the phase that does
/// not begin.
bool have_no_complaint(RunContext& context, const std::string& phase, const std::string& complaint, int code);

}  // namespace sonde::phases
