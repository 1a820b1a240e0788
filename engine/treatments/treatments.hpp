// SPDX-License-Identifier: Apache-2.0
// Treatments: actions on a node before a phase (drop caches, allocate memory, …) and a check of their effect.
#pragma once

#include "plan/plan.hpp"
#include "treatments/treatment_kind.hpp"

#include <span>
#include <string>
#include <vector>

namespace sonde::treatments {

/// All kinds of treatments, in the order of help texts.
std::span<const TreatmentKind* const> list_treatments();

/// Applies one treatment to this node; called by the leader of each node. `files` are the data files of this node's
/// tasks, `directory` is the run directory. The outcome is also `failed` when a cache treatment left more than
/// treatment.max_residency of the data in the page cache. Does not throw for failures of the treatment. Polls `stop` in
/// actions longer than 100 ms. `range`: when `files` is a block device, what the phase accesses of it.
TreatmentResult apply_treatment(const plan::Treatment& treatment, const std::string& directory,
                                const std::vector<std::string>& files, const StopPredicate& stop,
                                const DeviceRange& range = {});

}  // namespace sonde::treatments
