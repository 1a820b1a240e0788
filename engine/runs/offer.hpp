// SPDX-License-Identifier: Apache-2.0
// What this engine can be asked for in a plan: gathered from the lists of those who do it.
#pragma once

#include "plan/offer.hpp"

namespace sonde::runs {

/// For plan::parse_plan. The same every time.
const plan::Offer& offer();

}  // namespace sonde::runs
