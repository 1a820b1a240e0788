// SPDX-License-Identifier: Apache-2.0
// How a phase's own members are laid over those of the plan. schema/plan says the same (`instead_of`), and the lab
// takes it from there.
#pragma once

#include <nlohmann/json.hpp>

namespace sonde::plan {

/// Which rule this is: written into records, because it is a part of what a plan meant when it ran. Rule 1 took the
/// plan's block away from a phase that gave a transfer, and segments or a volume, but no block.
constexpr int overlay_rule = 2;

/// `base` with the members of `own` in place of its own, one by one; what `own` does not name stays. A member that
/// cannot stand beside another (segments and volume, say) takes that one away. A base that is not there (null) is
/// empty.
nlohmann::json laid_over(const nlohmann::json& base, const nlohmann::json& own);

}  // namespace sonde::plan
