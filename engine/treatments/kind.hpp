// SPDX-License-Identifier: Apache-2.0
// The seam of treatments: a kind of treatment is one file with one `Kind` value, listed in treatments.cpp.
#pragma once

#include "plan/offer.hpp"
#include "plan/plan.hpp"
#include "treatments/background.hpp"
#include "treatments/residency.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sonde::treatments {

struct TreatmentResult {
    enum class Outcome { done, failed, skipped };
    Outcome outcome = Outcome::done;
    double seconds = 0;
    std::string text;                        ///< one sentence: what was done, or why not and what would help
    std::optional<double> user_s, system_s;  ///< command: processor time of it and of the children it waited for
    std::optional<std::uint64_t> locks_before, locks_after;  ///< cancel_locks: kept without use
    Residency before, after;                                 ///< cache treatments: of `files`
    bool forgot_names = false;  ///< the node's memory of names and attributes was emptied too
    /// memory_hog: holds the memory; released when the last copy goes (the runner keeps it until the phase ends).
    std::shared_ptr<void> held;
};

/// A result without more to say than one sentence.
TreatmentResult said(TreatmentResult::Outcome outcome, std::string text);

/// What a treatment works on.
struct Subject {
    const plan::Treatment& asked;           ///< with the members that the plan gives it
    const std::string& directory;           ///< the run directory
    const std::vector<std::string>& files;  ///< data files of this node's tasks
    const StopAsked& stop;                  ///< to be polled in anything longer than 100 ms
};

struct Kind {
    plan::TreatmentRule rule;     ///< its name, and what a plan must say for it
    bool empties_caches = false;  ///< judged by how much of the files is still in the page cache afterwards
    /// Treats this node. Failures are results; what it throws becomes one.
    TreatmentResult (*apply)(const Subject& subject) = nullptr;
};

}  // namespace sonde::treatments
