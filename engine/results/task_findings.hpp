// SPDX-License-Identifier: Apache-2.0
// Findings about tasks and nodes: one that was slower than the others, started late, or lacked CPU time.
#pragma once

#include "results/circumstances.hpp"
#include "results/finding_list.hpp"

namespace sonde::results {

void find_slow_tasks(FindingList& findings, const Totals& totals, const PhaseCircumstances& circumstances,
                     const PhaseFacts& facts);

}  // namespace sonde::results
