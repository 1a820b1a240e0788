// SPDX-License-Identifier: Apache-2.0
// Reads meta.find of a plan.
#pragma once

#include "plan/entry_filter.hpp"
#include "plan/reader.hpp"

namespace sonde::plan {

/// Throws PlanError for invalid conditions, and when there is none.
EntryFilter read_entry_filter(const Reader& in);

}  // namespace sonde::plan
