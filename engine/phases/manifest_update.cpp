// SPDX-License-Identifier: Apache-2.0
#include "phases/manifest_update.hpp"

#include "files/object_run.hpp"
#include "files/segments.hpp"
#include "phases/stages.hpp"
#include "phases/tree_jobs.hpp"
#include "plan/check_objects.hpp"
#include "plan/json_io.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {
namespace {

using nlohmann::json;

/// The data state after a writing phase.
files::DataState make_data_state(const RunContext& context, std::size_t index, const results::Totals& totals) {
    const plan::Phase& phase = context.plan.phases[index];
    files::DataState state;
    state.phase = phase.id;
    state.generation = index + 1;
    state.access = phase.data.access;
    state.segments = files::segments_of(phase, context.tasks, context.node_memory);
    state.file_name_suffix = phase.data.files.suffix;
    state.file_indices = phase.files;
    state.is_order_known = phase.op != plan::Op::mixed && phase.data.access.order != plan::AccessOrder::random_replace;
    state.adds_data = phase.op != plan::Op::mixed;
    state.replaces_files = phase.makes_files();
    state.operations_by_task.assign(static_cast<std::size_t>(context.tasks.tasks()), 0);
    int writing_stream = 0;
    if (phase.op == plan::Op::duplex) {
        writing_stream = phase.streams[0].write ? 0 : 1;
        state.file_indices = {phase.streams[static_cast<std::size_t>(writing_stream)].file};
    }
    for (const results::TaskRow& row : totals.rows) {
        if (row.stream == writing_stream) {
            std::uint64_t& done = state.operations_by_task[static_cast<std::size_t>(row.task)];
            done = std::max(done, row.next_operation);
        }
    }
    return state;
}

/// Operations of each task in its first pass, when a later phase refers to this one in stop.within.
std::vector<std::uint64_t> count_done_by_task(const RunContext& context, const plan::Phase& phase,
                                              const results::Totals& totals) {
    const auto asks = [&phase](const plan::Phase& later) { return later.stop.within == phase.id; };
    if (std::none_of(context.plan.phases.begin(), context.plan.phases.end(), asks)) {
        return {};
    }
    std::vector<std::uint64_t> done(static_cast<std::size_t>(context.tasks.all_tasks()), 0);
    for (const results::TaskRow& row : totals.rows) {
        done[static_cast<std::size_t>(row.task)] = row.next_operation;
    }
    return done;
}

}  // namespace

void update_manifest(RunContext& context, std::size_t index, const results::Totals& totals) {
    const plan::Phase& phase = context.plan.phases[index];
    files::Manifest& manifest = context.manifest;
    if (phase.meta) {
        update_forest(phase, index, context.tasks, totals, manifest.trees);
    } else if (phase.op == plan::Op::remove) {
        manifest.data.forget(phase.data.files.suffix);
    } else if (plan::writes_planned_access(phase.op)) {
        manifest.data.add_state(make_data_state(context, index, totals));
    }
    const std::string text = context.team.broadcast(
        context.is_root() ? plan::serialize_json(json::array({manifest.data.to_json(), manifest.trees.states_to_json(),
                                                              count_done_by_task(context, phase, totals)}),
                                                 plan::JsonEncoding::strict_utf8)
                          : std::string());
    const json parts = plan::parse_json(text);
    if (!parts.at(2).empty()) {
        context.operations_done[phase.id] = parts.at(2).get<std::vector<std::uint64_t>>();
    }
    if (!context.is_root()) {
        manifest.data = files::Dataset::from_json(parts.at(0));
        manifest.trees.load_states(parts.at(1), context.tasks.all_tasks());
    }
}

bool save_manifest(RunContext& context, const plan::Phase& phase) {
    const bool in_bucket = plan::has_object_target(context.plan.target);
    if (!context.is_root() || (!context.storage.makes_files && !in_bucket) || context.in_place()) {
        return true;
    }
    const bool last = is_last_stage(context.plan, context.options.stage);
    if (in_bucket && last) {
        return true;  // removal asks for names only, which do not change
    }
    if (phase.meta && last) {
        return true;  // saves one fsync per phase in runs with many short phases
    }
    const std::string done = "phase " + phase.id + " is done, but ";
    try {
        if (in_bucket) {
            files::ObjectRun(context.plan.target, context.storage.directory).save(context.manifest, false);
        } else {
            context.manifest.save(context.open_directory());
        }
        return true;
    } catch (const files::NoSpaceError&) {
        if (last) {
            return true;
        }
        context.root_state.outcome.set(
            exit_failed, done + context.storage.directory +
                             " has no space left for the manifest that the next stage needs: make the volume smaller");
    } catch (const std::exception& error) {
        context.root_state.outcome.set(exit_failed, done + error.what());
    }
    return false;
}

}  // namespace sonde::phases
