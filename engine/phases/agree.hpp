// SPDX-License-Identifier: Apache-2.0
// Nothing is begun while anybody has a complaint.
#pragma once

#include "phases/context.hpp"

#include <string>

namespace sonde::phases {

/// True when no process has a complaint (a sentence; empty = none). Otherwise the root takes the first one as the
/// outcome, with exit code `code`, which is the same in all processes; `phase` names the phase that does not begin.
bool agree(Context& context, const std::string& phase, const std::string& complaint, int code);

}  // namespace sonde::phases
