// SPDX-License-Identifier: Apache-2.0
// What is done to a node before a phase: caches dropped, memory held, … and whether it had the effect.
#pragma once

#include "plan/plan.hpp"
#include "treatments/kind.hpp"

#include <span>
#include <string>
#include <vector>

namespace sonde::treatments {

/// All kinds of treatment, in the order in which they are listed to people.
std::span<const Kind* const> list();

/// Applies one treatment to this node (called by the leader of each node). `files` = the data files of this node's
/// tasks; `directory` = the run directory. Outcome `failed` also when a cache treatment left more than
/// treatment.max_resident of the data resident. Never throws for failures of the treatment itself.
/// Polls `stop` in anything longer than 100 ms.
TreatmentResult apply(const plan::Treatment& treatment, const std::string& directory,
                      const std::vector<std::string>& files, const StopAsked& stop);

}  // namespace sonde::treatments
