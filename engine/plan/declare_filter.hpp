// SPDX-License-Identifier: Apache-2.0
// Declares the members of `meta.find` (fields: entry_filter.hpp).
#pragma once

#include "plan/declaration.hpp"
#include "plan/entry_filter.hpp"

namespace sonde::plan {

void describe(Visitor& visitor, EntryFilter& filter);

}  // namespace sonde::plan
