// SPDX-License-Identifier: Apache-2.0
// The backends and treatments of this engine, collected from their lists.
#pragma once

#include "plan/capabilities.hpp"

namespace sonde::runs {

/// For plan::parse_plan. Returns the same object every time.
const plan::Capabilities& list_capabilities();

}  // namespace sonde::runs
