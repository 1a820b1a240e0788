// SPDX-License-Identifier: Apache-2.0
// Declares the members of phases (fields: plan.hpp).
#pragma once

#include "plan/declaration.hpp"
#include "plan/plan.hpp"

#include <functional>

namespace sonde::plan {

/// Facts about the plan that the reader of a phase needs.
struct PhaseContext {
    bool plan_has_data = false;
    bool plan_has_meta = false;
    /// Reads the plan's data or meta with the overrides of the phase.
    std::function<void(const Reader&, Phase&, bool tree)> read_merged;
};

void describe(Visitor& visitor, Treatment& treatment);
void describe(Visitor& visitor, DuplexStream& stream);
void describe_phase(Visitor& visitor, Phase& phase, const PhaseContext& context);

}  // namespace sonde::plan
