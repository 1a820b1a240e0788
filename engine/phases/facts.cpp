// SPDX-License-Identifier: Apache-2.0
#include "phases/facts.hpp"

#include "backends/backend.hpp"
#include "plan/parse.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>

namespace sonde::phases {
namespace {

/// Blocks are compared with lengths only where a phase has written its files from end to end, and made that durable:
/// delayed allocation would look like holes.
bool fills_its_files(const plan::Phase& phase) {
    const plan::Access& access = phase.data.access;
    const bool durable = phase.data.io.direct || phase.data.io.fsync != plan::Fsync::none;
    return plan::writes(phase.op) && durable && access.gap == 0 && access.order != plan::Order::stride &&
           access.order != plan::Order::random_replace;
}

/// Bytes that the first files occupy on storage, and their lengths.
void measure_blocks(const Context& context, const files::FileMap& map, results::Circumstances& about) {
    constexpr int enough = 16;
    for (int task = 0; task < std::min(enough, context.tasks.tasks()); ++task) {
        struct stat info {};
        if (::stat(map.path(task, 0).c_str(), &info) == 0) {
            about.disk_bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
            about.file_bytes += static_cast<std::uint64_t>(info.st_size);
        }
    }
}

/// Whether each task looks at what a task of another node made, so that no node can know it from making it.
bool names_of_others(const Context& context, const plan::Phase& phase) {
    for (int task = 0; task < context.tasks.tasks(); ++task) {
        const int owner = files::shifted(phase.shift, task, context.tasks);
        if (context.tasks.node_of(owner) == context.tasks.node_of(task)) {
            return false;
        }
    }
    return true;
}

/// The phase of this run that removed something last, before this one; empty: none did.
std::string removed_before(const plan::Plan& plan, std::size_t index) {
    std::string id;
    for (std::size_t i = 0; i < index; ++i) {
        if (plan.phases[i].op == plan::Op::remove_items || plan.phases[i].op == plan::Op::remove) {
            id = plan.phases[i].id;
        }
    }
    return id;
}

}  // namespace

std::string stopped_by(const plan::Phase& phase, const Measured& measured) {
    if (measured.stop == ranks::NodeControl::quit_interrupt) {
        return "interrupt";
    }
    if (measured.stop == ranks::NodeControl::quit_time_limit) {
        return "time_limit";
    }
    if (measured.stop != 0) {
        return "error";
    }
    if (phase.stop.time) {
        return "time";
    }
    const results::Totals& totals = measured.totals;
    if (totals.walls > 0) {
        return "stonewall";
    }
    const std::uint64_t done = totals.operations[0] + totals.operations[1] + totals.file_operations;
    return phase.stop.first_done && done < totals.planned_operations ? "first_done" : "volume";
}

results::PhaseFacts facts_of(const Context& context, const plan::Phase& phase, const Measured& measured,
                             const treatments::Residency& residency) {
    return {.stopped_by = stopped_by(phase, measured),
            .stonewall_ns = phase.stop.stonewall.value_or(0),
            .hosts = context.at_root.hosts,
            .resident = residency.known ? residency.share() : -1,
            .clocks = measured.clocks};
}

results::Circumstances circumstances_of(const Context& context, std::size_t index, const files::FileMap& map,
                                        const Measured& measured, const Treated& treated) {
    const plan::Phase& phase = context.plan.phases[index];
    const backends::Traits& backend = backends::find(phase.data.backend)->traits;
    results::Circumstances about{
        .phase = &phase,
        .backend = phase.data.backend,
        .stores_data = backend.stores_data && backend.needs_files,
        .memory_backed = context.storage.memory_backed,
        .tasks = context.tasks.tasks(),
        .tasks_per_node = context.tasks.tasks_on(0),
        .cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
        .node_memory = context.node_memory,
        .nodes = context.team.place().nodes,
        .resident = treated.residency.share(),
        .resident_known = treated.residency.known,
        .clock_drift_ns = measured.drift_ns,
        .other_cpu_s = measured.other_cpu_s,
        .verify_asked = plan::reads(phase.op) && !plan::writes(phase.op) &&
                        (phase.data.verify == plan::Verify::on_read || phase.data.verify == plan::Verify::both),
        .file_system = context.storage.file_system,
        .removed_before = removed_before(context.plan, index),
        .forgot_names = treated.forgot_names,
        .names_of_others = phase.meta && names_of_others(context, phase),
    };
    if (backend.needs_files && fills_its_files(phase) && stopped_by(phase, measured) == "volume") {
        measure_blocks(context, map, about);
    }
    return about;
}

}  // namespace sonde::phases
