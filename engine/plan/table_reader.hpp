// SPDX-License-Identifier: Apache-2.0
// Reads a JSON object into a value by its declaration.
#pragma once

#include "plan/declaration.hpp"

namespace sonde::plan {

/// Reads the members of `in`. Throws PlanError for members that are wrong, missing or not declared.
void read_members(const Reader& in, const DescribeMembers& members, const Capabilities& capabilities = {});

template <class T>
void read_table(const Reader& in, T& value) {
    read_members(in, [&value](Visitor& visitor) { describe(visitor, value); });
}

}  // namespace sonde::plan
