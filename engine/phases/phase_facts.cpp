// SPDX-License-Identifier: Apache-2.0
#include "phases/phase_facts.hpp"

#include "backends/backend.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>

namespace sonde::phases {
namespace {

/// Whether allocated blocks can be compared with file lengths: only after a phase that wrote its files completely and
/// durably, because delayed allocation looks like holes.
bool writes_complete_durable_files(const plan::Phase& phase) {
    const plan::Access& access = phase.data.access;
    const bool durable = phase.data.io.direct || phase.data.io.fsync != plan::Fsync::none;
    return plan::writes_planned_access(phase.op) && durable && access.gap == 0 &&
           access.order != plan::AccessOrder::stride && access.order != plan::AccessOrder::random_replace;
}

/// Measures allocated bytes and lengths of the first files.
void measure_allocated_blocks(const RunContext& context, const files::FileMap& map,
                              results::PhaseCircumstances& circumstances) {
    constexpr int enough = 16;
    for (int task = 0; task < std::min(enough, context.tasks.tasks()); ++task) {
        struct stat info {};
        if (::stat(map.path(task, 0).c_str(), &info) == 0) {
            circumstances.disk_bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
            circumstances.file_bytes += static_cast<std::uint64_t>(info.st_size);
        }
    }
}

/// Whether each task reads names that another node created, so that no node has them cached from creation.
bool reads_names_of_other_nodes(const RunContext& context, const plan::Phase& phase) {
    for (int task = 0; task < context.tasks.tasks(); ++task) {
        const int owner = files::shift_task(phase.shift, task, context.tasks);
        if (context.tasks.node_of(owner) == context.tasks.node_of(task)) {
            return false;
        }
    }
    return true;
}

/// Name of the last earlier phase that removed items; empty = none.
std::string find_earlier_removal(const plan::Plan& plan, std::size_t index) {
    std::string id;
    for (std::size_t i = 0; i < index; ++i) {
        if (plan.phases[i].op == plan::Op::remove_items || plan.phases[i].op == plan::Op::remove) {
            id = plan.phases[i].id;
        }
    }
    return id;
}

/// Whether a write of the phase may fail unseen, and no phase reads back what was written.
bool hides_write_errors(const plan::Plan& plan, const plan::Phase& phase, const backends::BackendTraits& backend) {
    return plan::writes(phase.op) && backend.hides_write_errors != nullptr && backend.hides_write_errors() &&
           std::ranges::all_of(plan.phases,
                               [](const plan::Phase& item) { return item.data.verify == plan::Verify::none; });
}

}  // namespace

std::string describe_stop(const plan::Phase& phase, const TimedResult& result) {
    if (result.stop_reason == ranks::NodeControl::quit_interrupt) {
        return "interrupt";
    }
    if (result.stop_reason == ranks::NodeControl::quit_time_limit) {
        return "time_limit";
    }
    if (result.stop_reason != 0) {
        return "error";
    }
    if (phase.stop.time) {
        return "time";
    }
    const results::Totals& totals = result.totals;
    if (totals.stonewalled_streams > 0) {
        return "stonewall";
    }
    const std::uint64_t done = totals.operations[0] + totals.operations[1] + totals.file_operations;
    return phase.stop.first_done && done < totals.planned_operations ? "first_done" : "volume";
}

results::PhaseFacts collect_phase_facts(const RunContext& context, const plan::Phase& phase, const TimedResult& result,
                                        const treatments::Residency& residency) {
    return {.stopped_by = describe_stop(phase, result),
            .stonewall_ns = phase.stop.stonewall.value_or(0),
            .hosts = context.root_state.hosts,
            .residency = residency.is_known ? residency.share() : -1,
            .clocks = result.clocks};
}

results::PhaseCircumstances collect_circumstances(const RunContext& context, std::size_t index,
                                                  const files::FileMap& map, const TimedResult& result,
                                                  const TreatmentEffect& effect) {
    const plan::Phase& phase = context.plan.phases[index];
    const backends::BackendTraits& backend = backends::find_backend(phase.data.backend)->traits;
    results::PhaseCircumstances circumstances{
        .phase = &phase,
        .backend = phase.data.backend,
        .stores_data = backend.stores_data && backend.needs_files,
        .memory_backed = context.storage.memory_backed,
        .tasks = context.tasks.tasks(),
        .tasks_per_node = context.tasks.tasks_on(0),
        .cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
        .node_memory = context.node_memory,
        .nodes = context.team.location().nodes,
        .residency = effect.residency.share(),
        .residency_known = effect.residency.is_known,
        .clock_drift_ns = result.drift_ns,
        .other_cores = result.other_cores,
        .maximum_request = context.storage.maximum_request,
        .verification_requested =
            plan::reads(phase.op) && (!plan::writes(phase.op) || phase.op == plan::Op::mixed) &&
            (phase.data.verify == plan::Verify::on_read || phase.data.verify == plan::Verify::both),
        .hides_write_errors = hides_write_errors(context.plan, phase, backend),
        .file_system = context.storage.file_system,
        .earlier_removal = find_earlier_removal(context.plan, index),
        .dropped_metadata_cache = effect.dropped_metadata_cache,
        .reads_names_of_other_nodes = phase.meta && reads_names_of_other_nodes(context, phase),
    };
    if (backend.needs_files && !phase.data.files.is_device() && writes_complete_durable_files(phase) &&
        describe_stop(phase, result) == "volume") {
        measure_allocated_blocks(context, map, circumstances);
    }
    return circumstances;
}

}  // namespace sonde::phases
