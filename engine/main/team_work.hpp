// SPDX-License-Identifier: Apache-2.0
// What the processes of a team do together, and how they part.
#pragma once

#include "ranks/team.hpp"

#include <functional>

namespace sonde {

/// Calls `work`, which all processes do alike and which says the exit code, and ends the team. Returns that code; when
/// a peer is gone, what the code was by then. Does not return when nobody may wait for that peer: then the process
/// ends.
int work_together(ranks::Team& team, const std::function<void(int& code)>& work);

}  // namespace sonde
