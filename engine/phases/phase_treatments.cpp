// SPDX-License-Identifier: Apache-2.0
#include "phases/phase_treatments.hpp"

#include "backends/backend.hpp"
#include "files/segments.hpp"
#include "patterns/geometry.hpp"
#include "phases/collectives.hpp"
#include "records/text.hpp"
#include "treatments/treatments.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::phases {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

bool needs_files(const plan::Phase& phase) {
    return backends::find_backend(phase.data.backend)->traits.needs_files;
}

/// Lists the data files that this phase uses on this node.
std::vector<std::string> list_node_files(const RunContext& context, const plan::Phase& phase,
                                         const files::FileMap& map) {
    std::vector<std::string> paths;
    if (!needs_files(phase) || phase.meta) {
        return paths;
    }
    if (phase.data.files.is_device()) {
        return {phase.data.files.device};
    }
    for (int task = 0; task < context.tasks.tasks(); ++task) {
        if (context.tasks.node_of(task) != context.team.location().node) {
            continue;
        }
        const int owner = plan::writes(phase.op) ? task : files::shift_task(phase.shift, task, context.tasks);
        for (const plan::DuplexStream& stream : phase.streams) {
            if (!stream.write) {
                paths.push_back(map.path(owner, stream.file));
            }
        }
        for (const int k : phase.files) {
            paths.push_back(map.path(owner, k));
        }
        for (int k = 0; phase.files.empty() && phase.streams.empty() && k < map.files_per_task(); ++k) {
            paths.push_back(map.path(owner, k));
        }
    }
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    return paths;
}

/// The byte range of a block device that all tasks of a phase access.
treatments::DeviceRange find_device_range(const RunContext& context, const plan::Phase& phase) {
    if (!phase.data.files.is_device()) {
        return {};
    }
    const patterns::FileShare share{static_cast<std::uint64_t>(context.tasks.tasks()), 0};
    const std::uint64_t segments = files::segments_of(phase, context.tasks, context.node_memory);
    const std::uint64_t offset = phase.data.access.offset;
    return {offset, patterns::Geometry(phase.data.access, segments, share, 0).end_of_file() - offset};
}

/// The record's `treatment` line of one node.
json make_line(const plan::Phase& phase, const plan::Treatment& treatment, const treatments::TreatmentResult& result,
               int node) {
    static constexpr const char* outcomes[] = {"done", "failed", "skipped"};
    json line{{"phase", phase.id},
              {"kind", treatment.kind},
              {"need", treatment.required ? "required" : "best_effort"},
              {"outcome", outcomes[static_cast<int>(result.outcome)]},
              {"seconds", result.seconds},
              {"text", records::to_json_text(result.text)},
              {"node", node}};
    if (result.user_s && result.system_s) {
        line["user_s"] = *result.user_s;
        line["system_s"] = *result.system_s;
    }
    if (result.dropped_metadata_cache) {
        line["metadata_cache_dropped"] = true;
    }
    if (result.locks_before && result.locks_after) {
        line["locks_before"] = *result.locks_before;
        line["locks_after"] = *result.locks_after;
    }
    if (result.before.is_known) {
        line["residency_before"] = result.before.share();
    }
    if (result.after.is_known) {
        line["residency_after"] = result.after.share();
    }
    return line;
}

}  // namespace

TreatmentEffect apply_treatments(RunContext& context, std::size_t index, const files::FileMap& map) {
    const plan::Phase& phase = context.plan.phases[index];
    const auto stopped = [&control = context.team.control()] { return control.stop.load() != 0; };
    const bool leader = context.team.location().is_leader();
    const std::vector<std::string> paths = leader && (!phase.before.empty() || plan::reads(phase.op))
                                               ? list_node_files(context, phase, map)
                                               : std::vector<std::string>{};
    const treatments::DeviceRange range = find_device_range(context, phase);
    TreatmentEffect effect;
    for (const plan::Treatment& treatment : phase.before) {
        json own_list = json::array();
        if (leader) {
            const treatments::TreatmentResult result =
                treatments::apply_treatment(treatment, context.storage.directory, paths, stopped, range);
            effect.memory_held.push_back(result.memory_held);
            own_list.push_back(make_line(phase, treatment, result, context.team.location().node));
        }
        std::string complaint;
        const json lines = gather_list(context.team, own_list);
        effect.dropped_metadata_cache =
            effect.dropped_metadata_cache ||
            (!lines.empty() && std::all_of(lines.begin(), lines.end(), [](const json& line) {
                return line.contains("metadata_cache_dropped") && line.at("metadata_cache_dropped") == true;
            }));
        for (const json& line : lines) {
            context.root_state.record->write_line("treatment", ordered_json(line));
            if (treatment.required && line.at("outcome") != "done" && complaint.empty()) {
                complaint = "phase " + phase.id + ": the required treatment " + treatment.kind +
                            " failed: " + line.at("text").get<std::string>();
            }
        }
        // All processes decide together, because a signal may have reached only some of them.
        if (context.team.reduce_maximum(context.team.control().stop.load()) != 0) {
            return effect;
        }
        effect.may_phase_begin = no_process_has_problem(context, phase.id, complaint, exit_environment);
        if (!effect.may_phase_begin) {
            return effect;
        }
    }
    if (leader && plan::reads(phase.op) && needs_files(phase)) {
        effect.residency = treatments::measure_residency(paths, treatments::max_examined_files, range);
    }
    return effect;
}

}  // namespace sonde::phases
