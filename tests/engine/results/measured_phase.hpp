// SPDX-License-Identifier: Apache-2.0
// A measured phase without findings, which a test changes in one respect.
#pragma once

#include "named_findings.hpp"
#include "results/phase_findings.hpp"
#include "rows.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sonde::tests {

inline constexpr std::uint64_t gib = 1ULL << 30U;

/// A direct read of 10 s by four tasks on a node of 16 GiB and 8 cores: it has no finding.
struct MeasuredPhase {
    plan::Phase phase;
    results::Totals totals;
    results::PhaseFacts facts;
    results::PhaseCircumstances circumstances;

    MeasuredPhase() {
        phase.id = "p";
        phase.op = plan::Op::read;
        phase.data.io.direct = true;
        phase.data.access.transfer = 1024;
        facts.stopped_by = "volume";
        circumstances.stores_data = true;
        circumstances.tasks = circumstances.tasks_per_node = 4;
        circumstances.cpus = 8;
        circumstances.node_memory = 16 * gib;
        circumstances.residency = 0;
        circumstances.residency_known = true;
        totals.bytes[0] = 4 * gib;
        totals.operations[0] = totals.planned_operations = 4096;
        set_duration(10 * second);
        for (int task = 0; task < 4; ++task) {
            totals.rows.push_back(row_of(task, 0, 0, 10 * second, 0));
            totals.rows.back().next_operation = gib / 1024;
        }
    }
    void set_duration(std::int64_t ns) {
        totals.parts_of_work = {};
        totals.parts_of_work[meters::part_transfer].add(0, static_cast<std::uint64_t>(ns));
    }
};

using Change = std::function<void(MeasuredPhase&)>;

/// The findings about the phase after a change.
inline std::vector<nlohmann::ordered_json> find_findings(const Change& change) {
    MeasuredPhase sample;
    change(sample);
    sample.circumstances.phase = &sample.phase;
    return results::find_phase_findings(sample.totals, sample.facts, sample.circumstances);
}

/// The findings as "severity:id", with a space between them.
inline std::string list_finding_ids(const Change& change) {
    return names_of(find_findings(change));
}

inline void write_buffered(MeasuredPhase& k) {
    k.phase.op = plan::Op::write;
    k.phase.data.io.direct = false;
    k.totals.bytes = {0, 4 * gib};
}

inline void read_buffered(MeasuredPhase& k) {
    k.phase.data.io.direct = false;
}

}  // namespace sonde::tests
