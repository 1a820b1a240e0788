// SPDX-License-Identifier: Apache-2.0
// The rules between a phase and its backend.
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

namespace sonde::plan {

/// Throws PlanError when the backend is unknown or lacks a feature. Whether it can run on this machine is checked when
/// the run begins.
void check_backend(const Phase& phase, const Capabilities& capabilities);

}  // namespace sonde::plan
