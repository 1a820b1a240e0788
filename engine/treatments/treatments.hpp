// SPDX-License-Identifier: Apache-2.0
// What is done to a node before a phase: caches dropped, memory held, … and whether it had the effect.
#pragma once

#include "plan/plan.hpp"
#include "treatments/background.hpp"
#include "treatments/residency.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sonde::treatments {

struct TreatmentResult {
    enum class Outcome { done, failed, skipped };
    Outcome outcome = Outcome::done;
    double seconds = 0;
    std::string text;         ///< one sentence: what was done, or why not and what would help
    Residency before, after;  ///< cache treatments: of `files`
    /// memory_hog: holds the memory; released when the last copy goes (the runner keeps it until the phase ends).
    std::shared_ptr<void> held;
};

/// Applies one treatment to this node (called by the leader of each node). `files` = the data files of this node's
/// tasks; `directory` = the run directory. Outcome `failed` also when a cache treatment left more than
/// treatment.max_resident of the data resident. Never throws for failures of the treatment itself.
/// Polls `stop` in anything longer than 100 ms.
TreatmentResult apply(const plan::Treatment& treatment, const std::string& directory,
                      const std::vector<std::string>& files, const StopAsked& stop);

/// "drop_page_cache" … as in the plan.
std::string name(plan::Treatment::Kind kind);

}  // namespace sonde::treatments
