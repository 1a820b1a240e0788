// SPDX-License-Identifier: Apache-2.0
// Rejects plan members that do not apply to backends that store data in the datasets of a file format (HDF5, netCDF).
#pragma once

#include "plan/capabilities.hpp"
#include "plan/plan.hpp"

#include <string>

namespace sonde::plan {

/// Rules for one phase on data; none for other backends. `source`: the phase whose data this one reads, or null. Throws
/// PlanError.
void check_datasets(const std::string& where, const Plan& plan, const Phase& phase, const Phase* source,
                    const Capabilities& capabilities);

}  // namespace sonde::plan
