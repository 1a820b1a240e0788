// SPDX-License-Identifier: Apache-2.0
// Writes a value as resolved JSON by its declaration: sizes in bytes, durations as "<n>ns", defaults included.
#pragma once

#include "plan/declaration.hpp"

namespace sonde::plan {

ordered_json resolve_members(const DescribeMembers& members);

}  // namespace sonde::plan
