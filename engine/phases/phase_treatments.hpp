// SPDX-License-Identifier: Apache-2.0
// Applies the treatments of a phase on all nodes, and measures the residency of its data.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "treatments/residency.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace sonde::phases {

/// Effect of the treatments on this process's node.
struct TreatmentEffect {
    bool may_phase_begin = true;  ///< false = a required treatment failed; the outcome has the reason
    std::vector<std::shared_ptr<void>> memory_held;  ///< memory of memory_hog treatments, held until the phase ends
    bool dropped_metadata_cache = false;             ///< at the root: a treatment emptied the name cache of every node
    treatments::Residency residency;  ///< of the data that this node will read; set at leaders, before phases that read
};

/// All processes call it; the leader of each node applies the treatments. Returns early when the run is asked to stop.
TreatmentEffect apply_treatments(RunContext& context, std::size_t index, const files::FileMap& map);

}  // namespace sonde::phases
