// SPDX-License-Identifier: Apache-2.0
// The treatments of a phase on all nodes, and what the page caches hold of its data then.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "treatments/residency.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace sonde::phases {

/// What treatments leave behind on this process's node.
struct Treated {
    bool may_begin = true;                    ///< false: a required treatment failed; the outcome says which
    std::vector<std::shared_ptr<void>> held;  ///< memory hogs: to be kept until the phase is over
    bool forgot_names = false;                ///< at the root: a treatment emptied every node's memory of names
    treatments::Residency residency;          ///< of the data that this node will read; at leaders, before a read
};

/// All processes call it; the leader of each node treats. Ends early, and may begin, when the run is asked to stop.
Treated treat(Context& context, std::size_t index, const files::FileMap& map);

}  // namespace sonde::phases
