// SPDX-License-Identifier: Apache-2.0
// The rules between a phase and its backend: there is one of that name, and it can do what is asked.
#pragma once

#include "plan/offer.hpp"
#include "plan/plan.hpp"

namespace sonde::plan {

/// Throws PlanError. Whether a backend can run on this machine is asked when the run begins.
void check_backend(const Phase& phase, const Offer& offer);

}  // namespace sonde::plan
