// SPDX-License-Identifier: Apache-2.0
// Facts about a phase beyond the counters of its streams, without assessment.
#pragma once

#include "files/file_map.hpp"
#include "phases/context.hpp"
#include "phases/phase_treatments.hpp"
#include "phases/timed_part.hpp"
#include "results/phase_findings.hpp"
#include "results/summary.hpp"
#include "treatments/residency.hpp"

#include <cstddef>
#include <string>

namespace sonde::phases {

/// Reason for the end of a phase, as in the record: "interrupt", "time_limit", "error", "time", "stonewall",
/// "is_first_task_done" or "volume".
std::string describe_stop(const plan::Phase& phase, const TimedResult& result);

/// Facts for the record's lines. At the root.
results::PhaseFacts collect_phase_facts(const RunContext& context, const plan::Phase& phase, const TimedResult& result,
                                        const treatments::Residency& residency);

/// Facts for the findings. At the root; examines the written files of the first tasks.
results::PhaseCircumstances collect_circumstances(const RunContext& context, std::size_t index,
                                                  const files::FileMap& map, const TimedResult& result,
                                                  const TreatmentEffect& effect);

}  // namespace sonde::phases
