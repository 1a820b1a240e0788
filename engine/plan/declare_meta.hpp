// SPDX-License-Identifier: Apache-2.0
// Declares the members of `meta` (fields: meta.hpp).
#pragma once

#include "plan/declaration.hpp"
#include "plan/plan.hpp"

namespace sonde::plan {

/// `data` gets the members of `meta` that are also those of data (backend, payload, verify, paced).
void describe_meta(Visitor& visitor, Meta& meta, Data& data);

}  // namespace sonde::plan
