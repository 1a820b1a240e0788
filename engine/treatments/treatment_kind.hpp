// SPDX-License-Identifier: Apache-2.0
// Interface of treatments: one file per kind with one `TreatmentKind` value, listed in treatments.cpp.
#pragma once

#include "plan/capabilities.hpp"
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
    enum class Status { done, failed, skipped };
    Status outcome = Status::done;
    double seconds = 0;
    std::string text;  ///< one sentence: the action, or the reason of a failure and a remedy
    std::optional<double> user_s,
        system_s;  ///< command: CPU time of the process and of the children that it waited for
    std::optional<std::uint64_t> locks_before, locks_after;  ///< cancel_locks: number of unused locks
    Residency before, after;                                 ///< cache treatments: of `files`
    bool dropped_metadata_cache = false;                     ///< the cache of names and attributes was emptied too
    /// memory_hog: owns the memory, which is released with the last copy after the phase.
    std::shared_ptr<void> memory_held;
};

/// A result with an outcome and one sentence.
TreatmentResult make_result(TreatmentResult::Status outcome, std::string text);

/// Input of a treatment.
struct TreatmentRequest {
    const plan::Treatment& treatment;       ///< as in the plan
    const std::string& directory;           ///< the run directory
    const std::vector<std::string>& files;  ///< data files of this node's tasks
    const StopPredicate& stop;              ///< must be polled by any action longer than 100 ms
    const DeviceRange& range;               ///< when `files` is a block device: what the phase accesses of it
};

struct TreatmentKind {
    plan::TreatmentCapability capability;  ///< name, and required members of the plan
    bool empties_caches = false;           ///< its outcome depends on the residency of the files afterwards
    /// Applies the treatment to this node. Failures are results; exceptions are converted to results.
    TreatmentResult (*apply)(const TreatmentRequest& context) = nullptr;
};

}  // namespace sonde::treatments
