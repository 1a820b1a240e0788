// SPDX-License-Identifier: Apache-2.0
// Reads meta.find of a plan.
#pragma once

#include "plan/find.hpp"
#include "plan/reader.hpp"

namespace sonde::plan {

/// Throws PlanError for conditions that make no sense, and when there is none.
Find read_find(const Reader& in);

}  // namespace sonde::plan
