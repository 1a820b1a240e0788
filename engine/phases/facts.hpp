// SPDX-License-Identifier: Apache-2.0
// What is known about a phase besides what its streams have counted. Nothing is judged here, and nothing is written.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "phases/timed_part.hpp"
#include "phases/treat.hpp"
#include "results/summary.hpp"
#include "results/validity.hpp"
#include "treatments/residency.hpp"

#include <cstddef>
#include <string>

namespace sonde::phases {

/// Why a phase ended, as the record says it: "interrupt", "time_limit", "error", "time", "stonewall", "first_done" or
/// "volume".
std::string stopped_by(const plan::Phase& phase, const Measured& measured);

/// For the lines of the record. At the root.
results::PhaseFacts facts_of(const Context& context, const plan::Phase& phase, const Measured& measured,
                             const treatments::Residency& residency);

/// For the findings. At the root; looks at the written files of the first tasks.
results::Circumstances circumstances_of(const Context& context, std::size_t index, const files::FileMap& map,
                                        const Measured& measured, const Treated& treated);

}  // namespace sonde::phases
